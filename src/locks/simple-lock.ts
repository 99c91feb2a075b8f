import { orAbort } from '../base/abort.ts';
import { deferred } from '../base/deferred.ts';
import { isServerError, SessionLostError, UnreachableError } from '../protocol/errors.ts';
import { uuidOf } from '../queue/entry-name.ts';
import { removeInBackground } from '../queue/refused-removals.ts';
import { isInterrupted, isUnsent, untilAnswered, untilWritable } from '../queue/settled-writes.ts';
import type { StoreSession } from '../queue/store-session.ts';
import { ZooKeeperPlace } from '../queue/zookeeper-place.ts';
import { ZooKeeperQueue } from '../queue/zookeeper-queue.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import { holdOf } from './contention.ts';
import { type Grant, PlaceGrant } from './grant.ts';
import { type AcquireOptions, Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { WrongKindError } from './lock-errors.ts';

/**
 * The textbook lock that does not scale.
 *
 *   1. Create the lock's one node. Made: held.
 *   2. There already: watch it, and when it is gone go to 1, together with everybody else.
 *
 * Unfair, and each release wakes all who wait: n contenders cost n² requests. Here to be measured beside `Mutex`, and
 * for locks that hardly ever have two contenders. Abort, loss and fencing are as everywhere.
 */
export class SimpleLock extends Lock {
  readonly #path: string;
  readonly #queue: ZooKeeperQueue;
  /** The newest node that is known to be a contender's of this process. */
  #knownCzxid = 0n;

  /** @internal */
  protected readonly usedAs = 'simple';

  /** @internal */
  constructor(context: LockContext, name: string) {
    super(context, name);
    this.#path = `${context.root}/${name}`;
    this.#queue = new ZooKeeperQueue(context.store, context.root);
  }

  protected async contend(options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<Grant> {
    for (;;) {
      try {
        const grant = await this.#take(options, giveUp);
        if (grant) return grant;
        await this.#untilGone(options, giveUp);
      } catch (error) {
        const again =
          error instanceof SessionLostError || error instanceof UnreachableError || isInterrupted(error);
        if (!again) throw error;
        giveUp?.throwIfAborted();
      }
    }
  }

  protected async tryContend(
    options: AcquireOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<Grant | undefined> {
    const { zk } = this.context;
    const stat = await untilAnswered(() => zk.exists(this.#path, giveUp ? { signal: giveUp } : {}));
    if (stat) return this.#checkKind(stat.ephemeralOwner);
    return this.#take(options, giveUp);
  }

  /** Undefined if somebody else has it. */
  async #take(options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<Grant | undefined> {
    giveUp?.throwIfAborted();
    const taking = this.#create(options, giveUp);
    let place: ZooKeeperPlace | undefined;
    try {
      place = await orAbort(taking, giveUp);
    } catch (error) {
      if (giveUp?.aborted) taking.then((taken) => taken?.leave()).catch(() => {});
      throw error;
    }
    if (!place) return undefined;
    const taken = place;
    try {
      return new LoneGrant(taken, await holdOf(taken, giveUp), false);
    } catch (error) {
      void taken.leave().catch(() => {});
      throw error;
    }
  }

  /** Undefined if somebody else has it. Given up, it sends nothing more, and settles when it is known what has come of it. */
  async #create(
    options: AcquireOptions,
    giveUp: AbortSignal | undefined,
  ): Promise<ZooKeeperPlace | undefined> {
    const shared = this.context.store.current;
    const { store, session, gate } = shared;
    const { zk } = store;
    shared.tokens.prepare();
    const id = uuidOf(store.random.bytes(16));
    const data = JSON.stringify({ ...JSON.parse(this.describe(options)), id });
    const acl = store.entryAcl && { acl: store.entryAcl };
    for (;;) {
      if (!gate.isOpen) await gate.pass(giveUp);
      giveUp?.throwIfAborted();
      try {
        const creating = { mode: 'ephemeral', session, unqueued: true, ...acl } as const;
        const { stat } = await zk.create(this.#path, data, creating);
        return await this.#placeOf(stat.czxid, shared, data);
      } catch (error) {
        if (isServerError(error, 'no-node')) {
          await this.#ensureRoot(session);
        } else if (isUnsent(error)) {
        } else if (isServerError(error, 'node-exists')) {
          return undefined;
        } else if (isInterrupted(error)) {
          const mine = await untilWritable({ clock: store.clock, session }, () =>
            this.#find(id, data, shared),
          );
          if (mine) return mine;
        } else {
          throw error;
        }
      }
    }
  }

  /** What a lost connection leaves open of it is found out by trying to create the lock's node again. */
  async #ensureRoot(session: LockContext['zk']['session']): Promise<void> {
    const { zk, store, root } = this.context;
    const { folderAcl } = store.facts;
    const acl = folderAcl && { acl: folderAcl };
    try {
      await zk.ensurePath(root, { mode: 'container', session, unqueued: true, ...acl });
    } catch (error) {
      if (!isInterrupted(error)) throw error;
    }
  }

  /**
   * Whether a creation that was not answered has happened: the id in the data tells. If somebody has written over that,
   * to ask for the lock, a node of this session that nobody else here has is the one.
   */
  async #find(id: string, written: string, shared: StoreSession): Promise<ZooKeeperPlace | undefined> {
    const { zk } = this.context;
    const { session } = shared;
    for (;;) {
      try {
        const [, { data, stat }] = await Promise.all([
          zk.sync('/', { by: 'quorum', session }),
          zk.get(this.#path, { session }),
        ]);
        const made = data?.toString('utf8').includes(id);
        const overwritten = stat.version > 0 && stat.czxid > this.#knownCzxid;
        const mine = stat.ephemeralOwner === session.id && (made || overwritten);
        return mine ? await this.#placeOf(stat.czxid, shared, written) : undefined;
      } catch (error) {
        if (isServerError(error, 'no-node')) return undefined;
        if (!isInterrupted(error)) throw error;
      }
    }
  }

  async #untilGone(options: AcquireOptions, giveUp: AbortSignal | undefined): Promise<void> {
    const { zk } = this.context;
    const gone = deferred();
    const onChange = (_event: WatchEvent) => gone.resolve();
    const watching = zk.exists(this.#path, { watch: onChange, ...(giveUp && { signal: giveUp }) });
    try {
      const stat = await orAbort(watching, giveUp);
      if (!stat) return;
      this.#checkKind(stat.ephemeralOwner);
      this.waitsForHolder(options);
      this.events.emit('waiting', { ahead: 1, behind: this.name });
      await orAbort(gone.promise, giveUp);
    } finally {
      void watching.then(
        () => zk.unwatch(this.#path, 'exists', onChange),
        () => {},
      );
    }
  }

  #checkKind(owner: bigint): undefined {
    if (owner === 0n) throw new WrongKindError(this.name, 'there is a lock with a queue under this name');
  }

  async #placeOf(czxid: bigint, shared: StoreSession, data: string): Promise<ZooKeeperPlace> {
    if (czxid > this.#knownCzxid) this.#knownCzxid = czxid;
    const { tokens } = shared;
    try {
      const token = tokens.of(czxid) ?? (await tokens.whenKnown(czxid));
      const entry = { name: this.name, role: 'exclusive', sequence: 0, czxid } as const;
      const facts = { queue: this.#queue, entry, czxid, token, data, nameIsShared: true };
      return new ZooKeeperPlace(shared, facts);
    } catch (error) {
      removeInBackground(shared, this.#path, { czxid });
      throw error;
    }
  }
}

/** Others in the folder are other locks: there is no queue, and no baton. */
class LoneGrant extends PlaceGrant {
  override async watchSelf(): Promise<boolean> {
    await super.watchSelf();
    return false;
  }
}
