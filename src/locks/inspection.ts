import type { ZooKeeper } from '../client/zookeeper.ts';
import { isServerError, ServerError } from '../protocol/errors.ts';
import type { Stat } from '../protocol/records.ts';
import { inOrder, parseEntry, tied } from '../queue/entry-name.ts';
import type { EntryRole, QueueEntry } from '../queue/lock-queue.ts';
import type { ZooKeeperStore } from '../queue/zookeeper-store.ts';
import { decodeOwner, type Owner } from './owner.ts';
import { factsIn, semaphoreView } from './semaphore-view.ts';
import { SharedLooks } from './shared-looks.ts';

/**
 * What kind of lock a name has; `free` if nothing shows it, `unknown` if only strangers are there, `unreadable` if the
 * server does not let this client read it: `LockInfo.problem` says why.
 */
export type LockKind =
  | 'mutex'
  | 'read-write'
  | 'semaphore'
  | 'election'
  | 'simple'
  | 'free'
  | 'unknown'
  | 'unreadable';

/** One who holds or waits. */
export interface ContenderInfo {
  /** The name of its node: what `revoke` takes. */
  readonly id: string;
  readonly role: EntryRole;
  readonly token: bigint;
  /** The ZooKeeper session it lives in. */
  readonly session: bigint;
  /** When its node was made, by the server's clock. */
  readonly since: Date;
  readonly owner: Owner;
  /**
   * Its data may not be read by this client: nothing is known of its owner. Where the server hides the rest too, `token`
   * and `session` are 0, and `since` is the year 1970.
   */
  readonly unreadable?: true;
}

/** A lock as it was a moment ago. */
export interface LockInfo {
  readonly name: string;
  readonly kind: LockKind;
  readonly holders: readonly ContenderInfo[];
  /** Those who wait, first the one whose turn is next. */
  readonly queue: readonly ContenderInfo[];
  /** Names in the lock's folder that are no contenders. */
  readonly foreign: readonly string[];
  /** How many numbers its folder has given out. Numbers end at 2147483647, and start again when the folder is gone. */
  readonly numbered: number;
  /** Why it could not be read, where `kind` is `unreadable`. Only `list` has such: `inspect` throws that error. */
  readonly problem?: ServerError;
}

/** A contender, and what its node holds. */
interface ReadContender {
  readonly info: ContenderInfo;
  readonly data: Uint8Array | null;
}

const KINDS: Readonly<Record<EntryRole, LockKind>> = {
  exclusive: 'mutex',
  read: 'read-write',
  write: 'read-write',
  upgradable: 'read-write',
  upgraded: 'read-write',
  leader: 'election',
  lease: 'semaphore',
};

/** The kind of lock that an entry of this role is of, with its article: for people. */
export function lockTextOf(role: EntryRole): string {
  const kind = KINDS[role];
  return kind === 'election' ? 'an election' : kind === 'read-write' ? 'a read-write lock' : `a ${kind}`;
}

/** What a glance at a lock shows. */
export interface Glance {
  /** The first of those that hold it; undefined where too many entries would have to be asked for their order. */
  readonly holder?: ContenderInfo | undefined;
  readonly waiting: number;
}

/** Who holds a lock, by the names of entries only. */
interface Line {
  readonly folder: string;
  readonly holders: readonly QueueEntry[];
  readonly waiting: number;
  /** The order of the entries is known. */
  readonly isOrdered: boolean;
}

/** A glance asks the server about so many entries whose numbers are the same, and no more. */
const TIES_MAX = 128;
const NONE: ReadonlySet<string> = new Set();

/** What a look at locks is given up by. */
export interface LookBounds {
  readonly signal: AbortSignal;
}

/** Looks at locks from outside: two or three round trips for each, nothing written. */
export class Inspection {
  readonly #zk: ZooKeeper;
  readonly #store: ZooKeeperStore;
  readonly #root: string;
  readonly #lines = new SharedLooks<Line | Glance | undefined>();
  readonly #holders = new SharedLooks<ContenderInfo | undefined>();

  constructor(store: ZooKeeperStore, root: string) {
    this.#zk = store.facts.zk;
    this.#store = store;
    this.#root = root;
  }

  /**
   * Every lock that has a node, in the order of their names. One that the server does not let us read is listed as
   * unreadable: anyone who may create a folder must not be able to hide the other locks.
   */
  async list(bounds: LookBounds): Promise<LockInfo[]> {
    const names = await this.#children(this.#root, bounds);
    return Promise.all(
      names.sort().map(async (name) => {
        try {
          return await this.inspect(name, bounds);
        } catch (error) {
          if (!(error instanceof ServerError)) throw error;
          return unreadable(name, error);
        }
      }),
    );
  }

  async inspect(name: string, bounds: LookBounds): Promise<LockInfo> {
    const path = `${this.#root}/${name}`;
    this.#store.current.tokens.prepare();
    const [stat, names] = await Promise.all([this.#zk.exists(path, bounds), this.#children(path, bounds)]);
    if (stat && stat.ephemeralOwner !== 0n) return this.#simple(name, path, bounds);
    const numbered = stat ? createdCount(stat) : 0;
    if (names.includes('leases') || names.includes('locks'))
      return this.#semaphore(name, path, { names, bounds });
    const { entries, foreign } = sorted(names);
    const contenders = (await this.#read(path, entries, bounds)).map(({ info }) => info);
    const kind = contenders[0] ? KINDS[contenders[0].role] : foreign.length > 0 ? 'unknown' : 'free';
    const { holders, queue } = divided(contenders);
    return { name, kind, holders, queue, foreign, numbered };
  }

  /**
   * A holder of a lock and how many wait, by three or four requests however many there are: all who ask meanwhile share
   * them. Entries that are the asker's `own` are passed over. Undefined if it is free.
   */
  async glance(name: string, signal: AbortSignal, own = NONE): Promise<Glance | undefined> {
    const line = await this.#lines.of(name, signal, (shared) => this.#line(name, { signal: shared }));
    if (!line || !('folder' in line)) return line;
    const { folder, holders, waiting, isOrdered } = line;
    if (!isOrdered) return { waiting };
    const first = holders.find((entry) => !own.has(entry.name));
    if (!first) return undefined;
    const path = `${folder}/${first.name}`;
    const holder = await this.#holders.of(path, signal, async (shared) => {
      return (await this.#contender(path, first, { signal: shared }))?.info;
    });
    return holder && { holder, waiting };
  }

  async #line(name: string, bounds: LookBounds): Promise<Line | Glance | undefined> {
    const path = `${this.#root}/${name}`;
    this.#store.current.tokens.prepare();
    const names = await this.#children(path, bounds);
    if (names.length === 0) {
      const { holders } = await this.#simple(name, path, bounds);
      return holders[0] && { holder: holders[0], waiting: 0 };
    }
    const isSemaphore = names.includes('leases') || names.includes('locks');
    const folder = isSemaphore ? `${path}/leases` : path;
    const waits = isSemaphore ? sorted(await this.#children(`${path}/locks`, bounds)).entries : [];
    const { entries } = sorted(isSemaphore ? await this.#children(folder, bounds) : names);
    const ordered = await this.#ordered(folder, entries, bounds);
    const { holders, queue } = isSemaphore
      ? { holders: ordered ?? entries, queue: waits }
      : divided(ordered ?? entries);
    return { folder, holders, waiting: queue.length, isOrdered: ordered !== undefined };
  }

  /** Undefined where too many have the same number: their transactions tell then who came first. */
  async #ordered(
    folder: string,
    entries: readonly QueueEntry[],
    bounds: LookBounds,
  ): Promise<readonly QueueEntry[] | undefined> {
    const ties = new Set(tied(entries));
    if (ties.size === 0) return entries;
    if (ties.size > TIES_MAX) return undefined;
    const asked = entries.map(async (entry) => {
      if (!ties.has(entry)) return entry;
      const stat = await this.#zk.exists(`${folder}/${entry.name}`, bounds);
      return stat && { ...entry, czxid: stat.czxid };
    });
    return (await Promise.all(asked)).flatMap((entry) => (entry ? [entry] : [])).sort(inOrder);
  }

  async #simple(name: string, path: string, bounds: LookBounds): Promise<LockInfo> {
    const entry = { name, role: 'exclusive', sequence: 0, czxid: undefined } as const;
    const holder = (await this.#contender(path, entry, bounds))?.info;
    return {
      name,
      kind: holder ? 'simple' : 'free',
      holders: holder ? [holder] : [],
      queue: [],
      foreign: [],
      numbered: 0,
    };
  }

  async #semaphore(
    name: string,
    path: string,
    { names, bounds }: { readonly names: readonly string[]; readonly bounds: LookBounds },
  ): Promise<LockInfo> {
    const [leases, turnstile] = await Promise.all([
      this.#folderOfSemaphore(`${path}/leases`, bounds),
      this.#folderOfSemaphore(`${path}/locks`, bounds),
    ]);
    const nodeOf = ({ info, data }: ReadContender) => ({ info, facts: factsIn(data) });
    const { holders, queue } = semaphoreView({
      leases: leases.nodes.map(nodeOf),
      turnstile: turnstile.nodes.map(nodeOf),
      foreignCount: leases.foreignCount,
    });
    return {
      name,
      kind: 'semaphore',
      holders,
      queue,
      foreign: names.filter((each) => each !== 'leases' && each !== 'locks'),
      numbered: Math.max(leases.numbered, turnstile.numbered),
    };
  }

  async #folderOfSemaphore(path: string, bounds: LookBounds) {
    const [stat, names] = await Promise.all([this.#zk.exists(path, bounds), this.#children(path, bounds)]);
    const { entries, foreign } = sorted(names);
    const nodes = await this.#read(path, entries, bounds);
    return { nodes, foreignCount: foreign.length, numbered: stat ? createdCount(stat) : 0 };
  }

  async #read(folder: string, entries: readonly QueueEntry[], bounds: LookBounds): Promise<ReadContender[]> {
    const read = await Promise.all(
      entries.map((entry) => this.#contender(`${folder}/${entry.name}`, entry, bounds)),
    );
    return entries
      .map((entry, index) => ({ entry: { ...entry, czxid: read[index]?.info.token }, read: read[index] }))
      .sort((a, b) => inOrder(a.entry, b.entry))
      .flatMap(({ read }) => (read ? [read] : []));
  }

  async #contender(
    path: string,
    { name, role }: QueueEntry,
    bounds: LookBounds,
  ): Promise<ReadContender | undefined> {
    try {
      const { data, stat } = await this.#zk.get(path, bounds);
      const info = {
        id: name,
        role,
        token: await this.#tokenOf(stat),
        session: stat.ephemeralOwner,
        since: new Date(Number(stat.ctime)),
        owner: decodeOwner(data),
      };
      return { info, data };
    } catch (error) {
      if (isServerError(error, 'no-node')) return undefined; // Gone meanwhile.
      if (isServerError(error, 'no-auth')) return this.#unreadableContender(path, { name, role }, bounds);
      throw error;
    }
  }

  /** What a node is may be asked of most servers by anyone, also where its data may not be read. */
  async #unreadableContender(
    path: string,
    { name, role }: Pick<QueueEntry, 'name' | 'role'>,
    bounds: LookBounds,
  ): Promise<ReadContender | undefined> {
    const contender = { id: name, role, owner: {}, unreadable: true } as const;
    try {
      const stat = await this.#zk.exists(path, bounds);
      if (!stat) return undefined;
      const { ephemeralOwner, ctime } = stat;
      const token = await this.#tokenOf(stat);
      const since = new Date(Number(ctime));
      return { info: { ...contender, token, session: ephemeralOwner, since }, data: null };
    } catch (error) {
      // Servers that hide even that, as the embedded one.
      if (!isServerError(error, 'no-auth')) throw error;
      return { info: { ...contender, token: 0n, session: 0n, since: new Date(0) }, data: null };
    }
  }

  /** The one that its owner has: by the floors as they were when the node was made. */
  #tokenOf({ czxid }: Stat): bigint | Promise<bigint> {
    const { tokens } = this.#store.current;
    return tokens.of(czxid) ?? tokens.whenKnown(czxid);
  }

  async #children(path: string, bounds: LookBounds): Promise<string[]> {
    try {
      return await this.#zk.children(path, bounds);
    } catch (error) {
      if (isServerError(error, 'no-node')) return [];
      throw error;
    }
  }
}

function unreadable(name: string, problem: ServerError): LockInfo {
  return { name, kind: 'unreadable', holders: [], queue: [], foreign: [], numbered: 0, problem };
}

function sorted(names: readonly string[]): { entries: QueueEntry[]; foreign: string[] } {
  const entries: QueueEntry[] = [];
  const foreign: string[] = [];
  for (const name of names) {
    const entry = parseEntry(name);
    if (entry) entries.push(entry);
    else foreign.push(name);
  }
  return { entries: entries.sort(inOrder), foreign };
}

/** What the server counts is not shown: the version of a folder's children is twice the creations less the children. */
function createdCount({ cversion, numChildren }: Stat): number {
  return ((cversion + numChildren) >>> 0) / 2;
}

/** Who of those in line holds: the first, or all readers that no writer is ahead of, one upgradable among them. */
function divided<C extends Pick<QueueEntry, 'role'>>(
  contenders: readonly C[],
): {
  readonly holders: readonly C[];
  readonly queue: readonly C[];
} {
  const holders: C[] = [];
  for (const [index, contender] of contenders.entries()) {
    const { role } = contender;
    const isUpgradable = (info: C) => info.role === 'upgradable';
    if (role === 'read' || (role === 'upgradable' && !holders.some(isUpgradable))) holders.push(contender);
    else if (role === 'upgradable')
      continue; // Waits for the other one.
    else {
      // One who upgrades holds beside its own upgradable entry, and waits for everybody else.
      if (index === 0 || (role === 'upgraded' && holders.every(isUpgradable))) holders.push(contender);
      break;
    }
  }
  return { holders, queue: contenders.filter((contender) => !holders.includes(contender)) };
}
