import { sleep } from '../../src/base/abort.ts';
import { ops } from '../../src/client/operations-of-multi.ts';
import { Fence, ZooKeeperFence } from '../../src/locks/fence.ts';
import type { Holdfast } from '../../src/locks/holdfast.ts';
import type { Lock } from '../../src/locks/lock.ts';
import {
  ContenderEvictedError,
  LockLostError,
  LockTimeoutError,
  LockUnreachableError,
  StaleTokenError,
} from '../../src/locks/lock-errors.ts';
import type { LockLease } from '../../src/locks/lock-lease.ts';
import type { SemaphoreOptions } from '../../src/locks/semaphore.ts';
import {
  ClosedError,
  ConnectionLossError,
  isServerError,
  RequestTimeoutError,
  SessionLostError,
  UnreachableError,
  ZkError,
} from '../../src/protocol/errors.ts';
import type { GaveUp } from '../checker/history.ts';
import type { Abort, CloseStep, LockStep, Step } from '../scenario/scenario.ts';
import type { HeldLease, HoldMonitor } from './hold-monitor.ts';
import { Registers } from './registers.ts';
import { CLOSED_FOLDER, describe, type SimulatedClient, type World } from './world.ts';

/** Somebody changed their mind. */
export class CalledOff extends Error {
  override readonly name = 'CalledOff';
}

/** How soon one looks whether there is a client again. */
const RECONNECTING_MS = 20;

/** What is written under a lock's protection goes here. */
export const GUARDED_FOLDER = '/guarded';

/** The fences that resources keep in ZooKeeper, one for each lock. */
const FENCE_FOLDER = '/fences';
/** How long after its release, and after each time before, a holder admits its token once more. */
const LATE_MS: readonly number[] = [150, 150, 300, 600];
/** Releases are waited for however long they take: the history has when they are confirmed. */
const RELEASE_TIMEOUT_MS = 2 ** 31 - 1;

/** Carries out what clients are planned to do, and records what comes of it. */
export class Steps {
  readonly #world: World;
  readonly #monitor: HoldMonitor;
  readonly #registers: Registers;
  readonly #fences = new Map<string, Fence>();
  /** What each fence in ZooKeeper has admitted, once that was answered. */
  readonly #admitted = new Map<string, Fence>();
  /** Clients that were closed. */
  readonly #closed = new WeakSet<Holdfast>();
  /** The programs' own variables: without them the garbage collector would decide what a lock object still knows. */
  readonly #referred = new Set<object>();
  #attemptCount = 0;
  /** Steps that have begun and not ended, by what they are about. */
  readonly underway = new Map<symbol, string>();

  constructor(world: World, monitor: HoldMonitor) {
    this.#world = world;
    this.#monitor = monitor;
    this.#registers = new Registers(world);
  }

  async run(client: SimulatedClient, step: Step): Promise<void> {
    const key = Symbol();
    await sleep(client.process, step.afterMs);
    while (!client.holdfast) await sleep(client.process, RECONNECTING_MS);
    const { holdfast } = client;
    this.underway.set(
      key,
      `${client.plan.name}: ${step.kind === 'lock' ? `${step.how} ${step.locks}` : step.kind}`,
    );
    try {
      switch (step.kind) {
        case 'lock':
          return await this.#lock(client, holdfast, step);
        case 'look':
          return void (await this.#tolerantly(() => this.#look(holdfast, step.lock)));
        case 'revoke':
          return void (await this.#tolerantly(() => holdfast.revoke(step.lock)));
        case 'observe':
          return await this.#observe(client, holdfast, step);
        case 'close':
          return await this.#close(client, holdfast, step);
      }
    } finally {
      this.underway.delete(key);
    }
  }

  /** Everything that goes on by it ends, each call with an answer; then the program begins anew. */
  async #close(client: SimulatedClient, holdfast: Holdfast, { when }: CloseStep): Promise<void> {
    if (when) await new Promise<void>((resolve) => this.#later(client, when, resolve));
    if (client.holdfast !== holdfast) return; // Another task has closed it.
    this.#closed.add(holdfast);
    client.holdfast = undefined;
    const closing = holdfast.close();
    for (const { attempt, lease } of this.#monitor.leasesOf(client.plan.name)) {
      if (lease.remainingMs() > 0) this.#world.fail('L3c', `${attempt} holds on though its client is closed`);
    }
    await closing;
    while (!client.holdfast) await this.#world.connect(client).catch(() => {});
  }

  async #look(holdfast: Holdfast, lock: string): Promise<void> {
    await holdfast.inspect(lock);
    if (!this.#world.scenario.closedFolder) return;
    const listed = await holdfast.list().catch((error) => {
      if (isServerError(error, 'no-auth')) return [];
      throw error;
    });
    const closed = listed.find(({ name }) => `/locks/${name}` === CLOSED_FOLDER);
    if (closed?.kind !== 'unreadable')
      this.#world.fail('error', `a folder that may not be read is listed as ${closed?.kind ?? 'nothing'}`);
  }

  /** What comes of looking is checked by other means; that it ends is what matters here. */
  async #tolerantly(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof ZkError)) this.#world.fail('error', describe(error));
    }
  }

  async #observe(
    client: SimulatedClient,
    holdfast: Holdfast,
    step: { lock: string; forMs: number },
  ): Promise<void> {
    const controller = new AbortController();
    const cancel = client.process.at(client.process.nowMs() + step.forMs, () =>
      controller.abort(new CalledOff()),
    );
    let epoch = 0n;
    try {
      const election = holdfast.election(step.lock);
      this.#referred.add(election);
      for await (const leader of election.observe({ signal: controller.signal })) {
        if (!leader) continue;
        if (leader.epoch < epoch) this.#world.fail('L10', `the epoch went from ${epoch} to ${leader.epoch}`);
        epoch = leader.epoch;
      }
    } catch (error) {
      if (!(error instanceof CalledOff) && !(error instanceof ZkError))
        this.#world.fail('error', describe(error));
    } finally {
      cancel();
    }
  }

  async #lock(client: SimulatedClient, holdfast: Holdfast, step: LockStep): Promise<void> {
    const attempt = `${client.plan.name}#${++this.#attemptCount}`;
    const { locks, mode, weight = 1, timeoutMs } = step;
    const lock = lockOf(this.#world, holdfast, step);
    this.#referred.add(lock);
    // With 0 it is not waited for others; a lock that is free is granted when the answer comes.
    const deadlineMs = timeoutMs ? client.process.nowMs() + timeoutMs : undefined;
    this.#world.record({
      kind: 'asked',
      atMs: this.#world.nowMs,
      attempt,
      client: client.plan.name,
      locks,
      mode,
      ...(mode === 'lease' && { weight }),
      ...(timeoutMs && {
        deadlineAtMs: this.#world.nowMs + client.process.worldSpanMs(timeoutMs),
      }),
    });
    const controller = step.abort && new AbortController();
    let abortedAtMs: number | undefined;
    controller?.signal.addEventListener('abort', () => {
      abortedAtMs = this.#world.nowMs;
    });
    const inTime = () => {
      if (abortedAtMs === undefined || abortedAtMs === this.#world.nowMs) return;
      this.#world.fail('L14', `${attempt} was called off at ${abortedAtMs} and went on`);
    };
    if (step.abort) this.#abortLater(client, holdfast, step.abort, controller!);
    const options: SemaphoreOptions = {
      ...(!this.#isShared(locks) && { reason: attempt }),
      ...(controller && { signal: controller.signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(mode === 'lease' && weight > 1 && { permits: weight }),
    };
    const hold = async (lease: LockLease) => {
      const held: HeldLease = {
        ...{ attempt, client: client.plan.name, locks, mode, weight, lease },
        ...{ within: undefined, exempt: false, over: false, letGo: false, stop: () => {} },
      };
      this.#granted(client, lock, held, deadlineMs);
      await this.#hold(client, holdfast, lock, held, step);
      return held;
    };
    try {
      if (step.how === 'use') return await this.#use(attempt, lock, options, hold);
      const lease = await this.#acquire(lock, step, options);
      if (typeof lease === 'string') {
        inTime();
        return this.#gaveUp(attempt, lease);
      }
      const held = await hold(lease);
      await this.#release(held, step);
      if (step.act === 'late-fence') await this.#admitLate(client, holdfast, held);
    } catch (error) {
      if (error === controller?.signal.reason) inTime();
      this.#failed({ attempt, client: client.plan.name, locks, holdfast }, error, controller?.signal);
    }
  }

  /** It rejects with the loss if the lock was lost while its work ran, and only then. */
  async #use(
    attempt: string,
    lock: Lock,
    options: SemaphoreOptions,
    hold: (lease: LockLease) => Promise<HeldLease>,
  ): Promise<void> {
    let released = false;
    let lost: boolean | undefined;
    try {
      await lock.use(
        async (lease) => {
          const held = await hold(lease);
          released = held.letGo;
          lost = !released && lease.remainingMs() === 0;
          this.#letGo(held);
        },
        { ...options, releaseTimeoutMs: RELEASE_TIMEOUT_MS },
      );
      if (lost) this.#world.fail('L8', `${attempt}: use resolved, though its lock was lost while it ran`);
    } catch (error) {
      if (!(error instanceof LockLostError) || lost === undefined) throw error;
      if (!lost) this.#world.fail('L8', `${attempt}: use rejected: ${describe(error)}`);
    }
    if (!released) this.#released(attempt);
  }

  /** A node that tasks share is for all of them, whichever asked for it first. */
  #isShared(locks: readonly string[]): boolean {
    return this.#world.scenario.locks.some(({ name, sharing }) => sharing && locks.includes(name));
  }

  async #acquire(
    lock: Lock,
    { how }: LockStep,
    options: SemaphoreOptions,
  ): Promise<LockLease | GaveUp['reason']> {
    if (how === 'acquire') return lock.acquire(options);
    if (how === 'try') return (await lock.tryAcquire(options)) ?? 'busy';
    const result = await lock.attempt(options);
    return result.ok ? result.lease : result.reason;
  }

  #granted(client: SimulatedClient, lock: Lock, held: HeldLease, deadlineMs: number | undefined): void {
    const { lease, attempt } = held;
    const { process } = client;
    held.stop = lock.on('lost', ({ token, error }) => {
      if (token !== lease.token || held.letGo) return;
      held.stop();
      this.#world.record({ kind: 'lost', atMs: this.#world.nowMs, attempt, reason: error.message });
    });
    if (deadlineMs !== undefined && process.nowMs() > deadlineMs) {
      this.#world.fail('L3b', `${attempt} was granted ${process.nowMs() - deadlineMs} ms after its deadline`);
    }
    this.#world.record({
      kind: 'granted',
      atMs: this.#world.nowMs,
      attempt,
      token: lease.token,
      ...(lease.section > 0 && { section: lease.section }),
      session: String(lease.holding.grant.bound.session?.id),
      leaseEndsAtMs: this.#world.nowMs + process.worldSpanMs(lease.remainingMs()),
    });
    this.#monitor.granted(held);
  }

  async #hold(
    client: SimulatedClient,
    holdfast: Holdfast,
    lock: Lock,
    held: HeldLease,
    step: LockStep,
  ): Promise<void> {
    const { lease, attempt } = held;
    const listen = () => {
      const { revocation } = lease;
      const onRevoked = () => {
        this.#world.record({ kind: 'revoked', atMs: this.#world.nowMs, attempt });
      };
      if (revocation.aborted) onRevoked();
      else revocation.addEventListener('abort', onRevoked, { once: true });
    };
    if (step.listens) listen();
    await sleep(client.process, step.holdMs / 2);
    if (step.counts) await this.#registers.use(holdfast, held);
    if (lease.remainingMs() > 0) await this.#act(client, holdfast, lock, held, step);
    await sleep(client.process, step.holdMs / 2);
    if (!step.listens) listen();
    if (lease.remainingMs() > 0) {
      const leaseEndsAtMs = this.#world.nowMs + client.process.worldSpanMs(lease.remainingMs());
      this.#world.record({ kind: 'looked', atMs: this.#world.nowMs, attempt, leaseEndsAtMs });
    }
  }

  async #act(
    client: SimulatedClient,
    holdfast: Holdfast,
    lock: Lock,
    held: HeldLease,
    step: LockStep,
  ): Promise<void> {
    const { lease } = held;
    switch (step.act) {
      case 'nothing':
        return;
      case 'guard':
        return this.#guard(held);
      case 'guard-on-leaving':
        // Once more when it lets go, which it does not wait for.
        held.guardsOnLeaving = true;
        return this.#guard(held);
      case 'fence':
        return this.#write(held);
      case 'late-fence':
        // Who holds for no time at all comes to it only after its release.
        return step.holdMs > 0 ? this.#admit(holdfast, held) : undefined;
      case 're-enter':
        return this.#within(client, lock, held);
      case 'nested-use':
        // Only inside `use` of the same lock does it re-enter; elsewhere it would wait for itself.
        if (step.how !== 'use') return;
        return this.#unlessOver(held, () =>
          lock.use(async (inner) => {
            if (inner.token !== lease.token) this.#world.fail('L8', `${held.attempt} re-entered as another`);
            await sleep(client.process, step.holdMs / 4);
          }),
        );
      case 'downgrade':
        return this.#downgrade(client, holdfast, held);
    }
  }

  async #within(client: SimulatedClient, lock: Lock, outer: HeldLease): Promise<void> {
    await this.#unlessOver(outer, async () => {
      const lease = await lock.acquire({ within: outer.lease });
      if (lease.token !== outer.lease.token) this.#world.fail('L8', `${outer.attempt} re-entered as another`);
      const held = this.#inner(client, lock, outer, { mode: outer.mode, lease });
      await sleep(client.process, 20);
      this.#letGo(held);
      await lease.release();
      this.#released(held.attempt);
    });
  }

  /** A lease that was made of another. */
  #inner(
    client: SimulatedClient,
    lock: Lock,
    outer: HeldLease,
    { mode, lease }: Pick<HeldLease, 'mode' | 'lease'>,
  ): HeldLease {
    const attempt = `${outer.attempt}.${mode === outer.mode ? 'within' : mode}`;
    const { locks, client: name, weight } = outer;
    this.#world.record({
      ...{ kind: 'asked', atMs: this.#world.nowMs, attempt, client: name, locks, mode },
      ...(mode === 'lease' && { weight }),
      within: outer.attempt,
    });
    const held: HeldLease = {
      ...outer,
      guardsOnLeaving: false,
      attempt,
      mode,
      lease,
      within: outer,
      over: false,
      letGo: false,
    };
    this.#granted(client, lock, held, undefined);
    return held;
  }

  async #downgrade(client: SimulatedClient, holdfast: Holdfast, outer: HeldLease): Promise<void> {
    if (outer.mode !== 'write') return;
    const lock = holdfast.readWriteLock(outer.locks[0]!);
    await this.#unlessOver(outer, async () => {
      const reading = await lock.read.acquire({ within: outer.lease });
      const held = this.#inner(client, lock.read, outer, { mode: 'read', lease: reading });
      this.#letGo(outer);
      await outer.lease.release();
      this.#released(outer.attempt);
      await sleep(client.process, 60);
      this.#letGo(held);
      await reading.release();
      this.#released(held.attempt);
    });
  }

  /** What ends a lease may come in the middle of anything. */
  async #unlessOver(held: HeldLease, act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (error instanceof ZkError && (isTransient(error) || error instanceof LockLostError)) return;
      if (isServerError(error, 'not-read-only')) return; // The disk takes nothing: it is said, and nothing was done.
      this.#world.fail('error', `${held.attempt}: ${describe(error)}`);
    }
  }

  /** Written only if the contender's node is there at that very moment: unconditionally in the order of tokens. */
  async #guard(held: HeldLease): Promise<void> {
    const { lease, locks } = held;
    await this.#unlessOver(held, () =>
      lease.guard([ops.set(`${GUARDED_FOLDER}/${locks[0]}`, String(lease.token))]),
    );
  }

  /** A resource that checks tokens refuses nobody who holds. */
  async #write(held: HeldLease): Promise<void> {
    if (held.mode === 'lease' || held.mode === 'read') return;
    const { lease, locks, attempt } = held;
    const resource = locks[0]!;
    const fence = this.#fences.get(resource) ?? new Fence();
    this.#fences.set(resource, fence);
    let outcome: 'applied' | 'refused' = 'applied';
    try {
      fence.admit(lease.token, lease.section);
    } catch (error) {
      if (!(error instanceof StaleTokenError)) throw error;
      outcome = 'refused';
      if (lease.remainingMs() > 0 && !this.#monitor.isExempt(held)) {
        this.#world.fail('L1u', `${attempt} holds ${resource} and was refused: ${error.message}`);
      }
    }
    const { nowMs } = this.#world;
    this.#world.record({
      kind: 'wrote',
      atMs: nowMs,
      resource,
      mode: 'write',
      token: lease.token,
      outcome,
      fenced: true,
    });
  }

  /**
   * A fence in ZooKeeper, asked through the holder's own connection: no token is admitted when a larger one was before
   * it was asked, however old what its server knows.
   */
  async #admit(holdfast: Holdfast, held: HeldLease): Promise<void> {
    if (held.mode === 'lease' || held.mode === 'read') return;
    const { lease, locks, attempt } = held;
    const { token, section } = lease;
    const resource = locks[0]!;
    const admitted = this.#admitted.get(resource) ?? new Fence();
    this.#admitted.set(resource, admitted);
    const before = new Fence({ highest: admitted.highest, section: admitted.section });
    const isStale = (fence: Fence) =>
      token < fence.highest || (token === fence.highest && section < fence.section);
    await this.#unlessOver(held, async () => {
      try {
        await new ZooKeeperFence(holdfast.zk, `${FENCE_FOLDER}/${resource}`).admit(token, section);
        if (isStale(before))
          this.#world.fail('L1u', `${attempt} was admitted: ${token} after ${before.highest}`);
        if (!isStale(admitted)) admitted.admit(token, section);
      } catch (error) {
        if (!(error instanceof StaleTokenError)) throw error;
        if (lease.remainingMs() > 0 && !this.#monitor.isExempt(held)) {
          this.#world.fail('L1u', `${attempt} holds ${resource} and was refused: ${error.message}`);
        }
      }
    });
  }

  /**
   * Again and again, when others may have been granted the lock and been admitted: one of these times a follower that
   * lags shows a mark that has been overtaken, or is behind what an earlier one has written.
   */
  async #admitLate(client: SimulatedClient, holdfast: Holdfast, held: HeldLease): Promise<void> {
    for (const ms of LATE_MS) {
      await sleep(client.process, ms);
      await this.#admit(holdfast, held);
    }
  }

  async #release(held: HeldLease, step: LockStep): Promise<void> {
    const { lease, attempt } = held;
    if (held.letGo) return; // By a downgrade.
    this.#letGo(held);
    const releasing = step.release === 'dispose' ? lease[Symbol.asyncDispose]() : lease.release();
    if (lease.remainingMs() > 0) this.#world.fail('L12', `${attempt} was released and says it is held`);
    if (step.release === 'twice')
      void lease.release().catch((error) => this.#world.fail('L12', describe(error)));
    const released = releasing.then(
      () => this.#released(attempt),
      (error) => this.#world.fail('L12', `${attempt}: release rejected: ${describe(error)}`),
    );
    if (step.release !== 'not-awaited') await released;
  }

  #letGo(held: HeldLease): void {
    if (held.letGo) return;
    if (held.guardsOnLeaving && held.lease.remainingMs() > 0) void this.#guard(held);
    held.letGo = true;
    held.stop();
    this.#monitor.letGo(held);
    this.#world.record({ kind: 'release-started', atMs: this.#world.nowMs, attempt: held.attempt });
  }

  #released(attempt: string): void {
    this.#world.record({ kind: 'released', atMs: this.#world.nowMs, attempt });
  }

  #gaveUp(attempt: string, reason: GaveUp['reason'], detail?: string): void {
    this.#world.record({
      kind: 'gave-up',
      atMs: this.#world.nowMs,
      attempt,
      reason,
      ...(detail && { detail }),
    });
  }

  #failed(
    {
      attempt,
      client,
      locks,
      holdfast,
    }: Pick<HeldLease, 'attempt' | 'client' | 'locks'> & { holdfast: Holdfast },
    error: unknown,
    signal: AbortSignal | undefined,
  ): void {
    if (signal?.aborted && error === signal.reason) return this.#gaveUp(attempt, 'aborted');
    if (error instanceof LockTimeoutError) return this.#gaveUp(attempt, 'timeout');
    if (error instanceof LockUnreachableError) return this.#gaveUp(attempt, 'unreachable');
    if (error instanceof ContenderEvictedError) {
      if (!this.#monitor.wasPutOut(client, locks))
        this.#world.fail('L14', `${attempt} was told of a removal that never was`);
      return this.#gaveUp(attempt, 'evicted');
    }
    if (error instanceof ClosedError && this.#closed.has(holdfast))
      return this.#gaveUp(attempt, 'error', 'closed');
    this.#world.fail('error', `${attempt}: ${describe(error)}`);
  }

  #abortLater(client: SimulatedClient, holdfast: Holdfast, abort: Abort, controller: AbortController): void {
    const callOff = () => controller.abort(new CalledOff('called off'));
    this.#later(client, abort, callOff);
    if (!abort.onLoss) return;
    const onLoss = () => void afterReactions(abort.reactions, callOff);
    holdfast.zk.session.lost.addEventListener('abort', onLoss, { once: true });
  }

  /** Does something so many steps and reactions from now. */
  #later(
    client: SimulatedClient,
    { steps, reactions }: Pick<Abort, 'steps' | 'reactions'>,
    act: () => void,
  ): void {
    const dueAt = this.#world.scheduler.stepCount + steps;
    this.#world.atStep(dueAt, () => client.process.input(() => void afterReactions(reactions, act)));
  }
}

async function afterReactions(count: number, act: () => void): Promise<void> {
  for (let reaction = 0; reaction < count; reaction++) await undefined;
  act();
}

function isTransient(error: ZkError): boolean {
  return [
    ConnectionLossError,
    SessionLostError,
    ClosedError,
    // Without a bound, a call ends when no server has answered for one session timeout.
    UnreachableError,
    RequestTimeoutError,
  ].some((type) => error instanceof type);
}

/** The lock that a step is about, on its client. */
export function lockOf(world: World, holdfast: Holdfast, { locks, mode }: LockStep): Lock {
  const [name] = locks as [string];
  if (locks.length > 1) return holdfast.multiLock(locks);
  const planned = world.scenario.locks.find((lock) => lock.name === name)!;
  switch (planned.recipe) {
    case 'mutex':
      return holdfast.mutex(name, planned.sharing);
    case 'read-write':
      return mode === 'read' ? holdfast.readWriteLock(name).read : holdfast.readWriteLock(name).write;
    case 'semaphore':
      return holdfast.semaphore(name, { permits: planned.permits! }) as unknown as Lock;
    case 'election':
      return holdfast.election(name);
    case 'simple':
      return holdfast.simpleLock(name);
  }
}
