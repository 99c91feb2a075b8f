import type { LockLease } from '../../src/locks/lock-lease.ts';
import { factsIn, semaphoreView } from '../../src/locks/semaphore-view.ts';
import { inOrder, parseEntry } from '../../src/queue/entry-name.ts';
import type { QueueEntry } from '../../src/queue/lock-queue.ts';
import type { DataTree } from '../../src/server/data-tree.ts';
import type { LockStep } from '../scenario/scenario.ts';
import type { World } from './world.ts';

/** When all is well, whoever has been in a queue for this long has been noticed by who holds. */
const NOTICED_MS = 600;

/** A lease that somebody has in hand. */
export interface HeldLease {
  readonly attempt: string;
  readonly client: string;
  readonly locks: readonly string[];
  readonly mode: LockStep['mode'];
  readonly weight: number;
  readonly lease: LockLease;
  /** The lease it re-enters or stands beside: no conflict with that. */
  readonly within: HeldLease | undefined;
  /** Somebody took its node or its session away by hand: nothing is promised then. */
  exempt: boolean;
  /** Seen not to be held any more: it must stay so. */
  over: boolean;
  /** It is being released, or has been. */
  letGo: boolean;
  /** Writes something guarded right before it is let go of. */
  guardsOnLeaving?: boolean;
  /** Hears no more of its lock. */
  stop: () => void;
}

/**
 * Looks at every lease after everything that happens. A lease says by its own client's clock whether it is held, so two
 * that exclude each other and both say so are two holders, whatever either has been told: no interval is guessed at.
 */
export class HoldMonitor {
  readonly #world: World;
  readonly #held = new Set<HeldLease>();
  /** Nodes that were taken away by hand, and when. */
  readonly #removed = new Map<string, number>();
  /** Whose waits and leases of which lock that has hit. */
  readonly #putOut = new Set<string>();
  readonly #endedSessions = new Set<bigint>();
  /** Nodes of those who let go of what they held: a neighbour may be told before they are deleted. */
  readonly #letGo = new Set<string>();
  readonly #permits: ReadonlyMap<string, number>;
  /** The nodes by which each token of a lock is held: those that were made by one transaction have the same. */
  readonly #paths = new Map<string, readonly string[]>();
  /** The newest token of each exclusive lock, and which of its holds. */
  readonly #tokens = new Map<string, { readonly token: bigint; readonly section: number }>();
  /** How often a node that tasks share was passed on although others had waited for long, by its path. */
  readonly #passCounts = new Map<string, number>();
  readonly #seenAtMs = new Map<string, number>();
  /** Nothing goes wrong any more: whoever comes is noticed in time. */
  healed = false;

  constructor(world: World) {
    this.#world = world;
    this.#permits = new Map(world.scenario.locks.map(({ name, permits }) => [name, permits ?? 1]));
  }

  get count(): number {
    return this.#held.size;
  }

  /** Told in the very reaction in which the lease was handed out. */
  granted(held: HeldLease): void {
    const { lease } = held;
    held.exempt ||= this.#isExempt(held);
    this.#held.add(held);
    if (held.within) return;
    for (const lock of held.locks) this.#paths.set(`${lock} ${lease.token}`, lease.holding.paths);
    if (lease.remainingMs() <= 0) this.#fail('L3b', `${held.attempt} was handed a lease that has ended`);
    this.#checkRemovals(held);
    if (held.exempt) return;
    this.#checkQueue(held);
    this.#checkTokens(held);
    this.#checkPasses(held);
    this.check();
  }

  /** Told before the call that lets go. */
  letGo(held: HeldLease): void {
    this.#held.delete(held);
    if (held.lease.remainingMs() > 0) for (const path of held.lease.holding.paths) this.#letGo.add(path);
  }

  /** The tokens that are held by this node. */
  tokensOf(path: string): readonly bigint[] {
    return [...this.#held]
      .filter(({ lease }) => lease.holding.paths.includes(path))
      .map(({ lease }) => lease.token);
  }

  leasesOf(client: string): readonly HeldLease[] {
    return [...this.#held].filter((held) => held.client === client);
  }

  /** The client is no more, and with it all that it held. */
  clientDied(client: string): void {
    for (const held of this.#held) if (held.client === client) this.#held.delete(held);
  }

  /** The nodes that whoever was granted this token of this lock holds by; none if nobody was. */
  pathsOf(lock: string, token: bigint): readonly string[] {
    return this.#paths.get(`${lock} ${token}`) ?? [];
  }

  /** Somebody takes a node of this client's away by hand. */
  clientPutOut(client: string, lock: string): void {
    this.#putOut.add(`${client} ${lock}`);
  }

  wasPutOut(client: string, locks: readonly string[]): boolean {
    return locks.some((lock) => this.#putOut.has(`${client} ${lock}`));
  }

  /** A node is taken away by hand. */
  nodeRemoved(path: string): void {
    this.#removed.set(path, this.#world.nowMs);
    for (const held of this.#held) held.exempt ||= this.#isExempt(held);
  }

  /** Somebody ends a session by hand. */
  sessionEnded(id: bigint): void {
    this.#endedSessions.add(id);
    for (const held of this.#held) held.exempt ||= this.#isExempt(held);
  }

  isExempt(held: HeldLease): boolean {
    held.exempt ||= this.#isExempt(held);
    return held.exempt;
  }

  check(): void {
    if (this.#held.size === 0) return;
    const live: HeldLease[] = [];
    for (const held of this.#held) {
      const isHeld = held.lease.remainingMs() > 0;
      if (isHeld && held.over) this.#fail('L3c', `${held.attempt} holds again after its lease had ended`);
      if (isHeld) this.#checkRemovals(held);
      if (!isHeld) held.over = true;
      else if (!held.exempt) live.push(held);
    }
    this.#checkShown(live);
    if (live.length < 2) return;
    for (const [index, one] of live.entries()) {
      for (let other = index + 1; other < live.length; other++) this.#checkPair(one, live[other]!);
    }
    this.#checkPermits(live);
  }

  #checkPair(one: HeldLease, other: HeldLease): void {
    if (one.mode === 'lease' || (one.mode === 'read' && other.mode === 'read')) return;
    const shared = one.locks.find((lock) => other.locks.includes(lock));
    if (shared === undefined || rootOf(one) === rootOf(other)) return;
    const property = one.mode === 'leader' ? 'L10' : one.mode === 'exclusive' ? 'L1' : 'L7';
    this.#fail(
      property,
      `${one.attempt} (${one.mode}, token ${one.lease.token}, ${one.lease.remainingMs().toFixed(1)} ms left) and ` +
        `${other.attempt} (${other.mode}, token ${other.lease.token}, ${other.lease.remainingMs().toFixed(1)} ms left) hold ${shared}`,
    );
  }

  #checkPermits(live: readonly HeldLease[]): void {
    const taken = new Map<string, number>();
    for (const { mode, locks, weight, within } of live) {
      if (mode === 'lease' && !within) taken.set(locks[0]!, (taken.get(locks[0]!) ?? 0) + weight);
    }
    for (const [lock, count] of taken) {
      if (count > this.#permits.get(lock)!) {
        this.#fail('L9', `${count} permits of ${lock} are held, of ${this.#permits.get(lock)}`);
      }
    }
  }

  /** What `inspect` makes of the server's own tree: each permit that is held is shown as held, and no more than all. */
  #checkShown(live: readonly HeldLease[]): void {
    const leases = live.filter(({ mode, within }) => mode === 'lease' && !within);
    const tree = this.#world.server?.core.tree;
    if (leases.length === 0 || !tree) return;
    for (const lock of new Set(leases.map(({ locks }) => locks[0]!))) {
      const { holders } = semaphoreIn(tree, lock);
      const shown = new Set(holders.map(({ id }) => id));
      for (const { attempt, lease, locks } of leases) {
        if (locks[0] !== lock) continue;
        const hidden = lease.holding.paths.find((path) => !shown.has(path.slice(path.lastIndexOf('/') + 1)));
        // The end of its session may not have been heard of yet.
        if (hidden && tree.get(hidden))
          this.#fail('L9', `${attempt} holds ${hidden}, and is not shown as a holder`);
      }
      const count = holders.length;
      if (count > this.#permits.get(lock)!) this.#fail('L9', `${count} holders of ${lock} are shown`);
    }
  }

  /** By the server's own tree: the node is there, and nobody who goes first, unless it was let go of. */
  #checkQueue(held: HeldLease): void {
    const { lease, attempt, mode } = held;
    const tree = this.#world.server?.core.tree;
    if (!tree) return;
    for (const path of lease.holding.paths) {
      const node = tree.get(path);
      if (!node) {
        this.#fail('L3b', `${attempt} was granted, and its node ${path} is gone`);
        continue;
      }
      const slash = path.lastIndexOf('/');
      const self = parseEntry(path.slice(slash + 1));
      if (!self || mode === 'lease') continue;
      const czxidOf = (name: string) => tree.get(`${path.slice(0, slash)}/${name}`)?.czxid;
      const me: QueueEntry = { ...self, czxid: node.czxid };
      for (const name of tree.get(path.slice(0, slash))?.children ?? []) {
        const other = parseEntry(name);
        if (!other || name === self.name || (mode === 'read' && other.role === 'read')) continue;
        const goesFirst =
          inOrder({ ...other, czxid: czxidOf(name) }, me) < 0 && other.sequence !== self.sequence;
        const otherPath = `${path.slice(0, slash)}/${name}`;
        if (goesFirst && !this.#isLetGo(otherPath) && !this.#isKeptByMate(held, otherPath)) {
          this.#fail('L6', `${attempt} was granted while ${name} goes first`);
        }
      }
    }
  }

  #isLetGo(path: string): boolean {
    return this.#letGo.has(path) && this.tokensOf(path).length === 0;
  }

  /**
   * Tasks of one client may all have given up when their place is granted: it is kept, or left as one that is held,
   * without a lease that anyone has let go of. One of the same process hears of that before the server does.
   */
  #isKeptByMate({ client, locks }: HeldLease, path: string): boolean {
    const { scenario, clients, server } = this.#world;
    if (!scenario.locks.find(({ name }) => name === locks[0])?.sharing) return false;
    const owner = server?.core.tree.get(path)?.owner;
    const process = clients.find(({ plan }) => plan.name === client)?.process;
    const isMate = clients.some((each) => each.process === process && each.holdfast?.zk.session.id === owner);
    return isMate && this.tokensOf(path).length === 0;
  }

  /** What everyone who looks at the node says of it, where the token is that of its own node. */
  #checkToken({ lease, mode, attempt }: HeldLease): void {
    const node = this.#world.server?.core.tree.get(lease.holding.paths[0]!);
    if (!node || (mode !== 'exclusive' && mode !== 'leader')) return;
    const token = this.#world.tokenOf(node.czxid);
    if (lease.token !== token)
      this.#fail('L2', `${attempt} was granted token ${lease.token}; its node has ${token}`);
  }

  #checkTokens(held: HeldLease): void {
    const { lease, locks, mode, attempt } = held;
    if (mode === 'lease' || mode === 'read') return;
    const { token, section } = lease;
    this.#checkToken(held);
    for (const lock of locks) {
      const newest = this.#tokens.get(lock);
      const isLater = !newest || token > newest.token || (token === newest.token && section > newest.section);
      if (!isLater)
        this.#fail(
          'L2',
          `${attempt} has token ${token}.${section} on ${lock}, after ${newest.token}.${newest.section}`,
        );
      this.#tokens.set(lock, { token, section });
    }
  }

  /** Tasks of one client pass a lock on no more often than they may while others wait. */
  #checkPasses({ lease, attempt, locks }: HeldLease): void {
    const planned = this.#world.scenario.locks.find(({ name }) => name === locks[0]);
    const tree = this.#world.server?.core.tree;
    if (!this.healed || !planned?.sharing || !tree) return;
    const [path] = lease.holding.paths as [string];
    const folder = path.slice(0, path.lastIndexOf('/'));
    const { nowMs } = this.#world;
    let waited = false;
    for (const name of tree.get(folder)?.children ?? []) {
      const sinceMs = this.#seenAtMs.get(name) ?? nowMs;
      this.#seenAtMs.set(name, sinceMs);
      waited ||= !path.endsWith(name) && nowMs - sinceMs > NOTICED_MS;
    }
    if (!waited || lease.section === 0) return;
    const count = (this.#passCounts.get(path) ?? 0) + 1;
    this.#passCounts.set(path, count);
    const { handOff } = planned.sharing;
    const grantsMax = typeof handOff === 'object' ? handOff.grantsMax! : 0;
    if (count > grantsMax) {
      this.#fail(
        'L6',
        `${attempt} is the ${count}th to be passed ${planned.name} while others wait; at most ${grantsMax}`,
      );
    }
  }

  /**
   * A holder has heard from the leader within one session timeout, and of every removal before that by the watch on its
   * own node; after a reconnection the watches are set again only behind the handshake, which counts as heard.
   */
  #checkRemovals({ lease, attempt, client }: HeldLease): void {
    const tree = this.#world.server?.core.tree;
    if (this.#removed.size === 0 || !tree) return;
    const { plan, process } = this.#world.clients.find(({ plan: { name } }) => name === client)!;
    const noticedMs = process.worldSpanMs(2 * plan.sessionTimeoutMs);
    for (const path of lease.holding.paths) {
      const agoMs = this.#world.nowMs - (this.#removed.get(path) ?? this.#world.nowMs);
      if (agoMs <= noticedMs || tree.get(path)) continue; // A server whose disk is full takes a removal back.
      this.#fail('L3r', `${attempt} holds by ${path}, which was removed ${agoMs.toFixed(0)} ms ago`);
    }
  }

  #isExempt({ lease, within }: HeldLease): boolean {
    if (within?.exempt) return true;
    const { grant } = lease.holding;
    const session = grant.bound.session?.id;
    if (session !== undefined && this.#endedSessions.has(session)) return true;
    return grant.paths.some((path) => this.#removed.has(path));
  }

  #fail(property: string, message: string): void {
    this.#world.fail(property, message);
  }
}

/** A semaphore as one that could read all of it at one moment would see it. */
function semaphoreIn(tree: DataTree, lock: string) {
  const read = (folder: string) =>
    [...(tree.get(folder)?.children ?? [])]
      .flatMap((name) => {
        const entry = parseEntry(name);
        const node = tree.get(`${folder}/${name}`);
        return entry && node ? [{ entry: { ...entry, czxid: node.czxid }, node }] : [];
      })
      .sort((a, b) => inOrder(a.entry, b.entry))
      .map(({ entry, node }) => ({
        info: { id: entry.name, token: node.czxid, session: node.owner },
        facts: factsIn(node.data),
      }));
  return semaphoreView({
    leases: read(`/locks/${lock}/leases`),
    turnstile: read(`/locks/${lock}/locks`),
    foreignCount: 0,
  });
}

function rootOf(held: HeldLease): HeldLease {
  return held.within ? rootOf(held.within) : held;
}
