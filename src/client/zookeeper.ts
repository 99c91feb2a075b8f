import { orAbort } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { runSafely } from '../base/emitter.ts';
import type { Log } from '../base/log.ts';
import { type AddWatchMode, addWatchModes, type WatchType, watchTypes } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import {
  isServerError,
  RequestTimeoutError,
  SessionLostError,
  type UnreachableError,
} from '../protocol/errors.ts';
import { operations } from '../protocol/operations.ts';
import type { ClientInfo, Stat } from '../protocol/records.ts';
import type { WatchEvent, Watcher, WatchIntent } from '../session/watch-registry.ts';
import { type AclEntry, fromWireAcl, toWireAcl } from './acl.ts';
import {
  checkChoice,
  checkData,
  checkFunction,
  checkListener,
  checkPath,
  checkVersion,
  type NodeData,
} from './arguments.ts';
import { boundedWait } from './bounded-wait.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from './call-options.ts';
import { Chroot } from './chroot.ts';
import { type ClientConfig, type ConnectOptions, readOptions } from './connect-options.ts';
import { addressText } from './connect-string.ts';
import { observe } from './observe.ts';
import {
  type CreateOptions,
  createOp,
  type MultiRead,
  type MultiReadResults,
  type MultiResults,
  type MultiWrite,
  rooted,
  shapeMulti,
  shapeMultiRead,
  wiresOf,
} from './operations-of-multi.ts';
import type { ReconfigChange } from './reconfig-change.ts';
import {
  checkObserveOptions,
  type EventsOptions,
  type ObserveOptions,
  type ReadOptions,
  type RequestOptions,
  type SyncOptions,
  type VersionedOptions,
  type WatchListener,
} from './request-options.ts';
import { Requester } from './requester.ts';
import type { Session } from './session.ts';
import { type ClientEvents, clientEventNames, SessionKeeper } from './session-keeper.ts';
import { deleteTree, ensurePath } from './tree.ts';
import type { Watch } from './watch.ts';
import { watchEvents } from './watch-stream.ts';

/** What a node holds, and what the server knows of it. */
export interface NodeState {
  readonly data: Buffer | null;
  readonly stat: Stat;
}

const CONNECT_TIMEOUT_MS = 15_000;

/**
 * Opens a client and waits for its first session.
 *
 * ```ts
 * await using zk = await connect('zk1:2181,zk2:2181,zk3:2181/app');
 * const { path, stat } = await zk.create('/jobs/job-', 'payload', { mode: 'ephemeral-sequential' });
 * ```
 *
 * @throws TypeError, RangeError for a bad server list or option.
 * @throws ZK_UNREACHABLE when no server granted a session in time, ZK_AUTH_FAILED when the credentials were refused.
 */
export async function connect(servers: string, options: ConnectOptions = {}): Promise<ZooKeeper> {
  const zk = ZooKeeper.open(servers, options);
  try {
    await zk.connected({ timeoutMs: options.timeoutMs ?? CONNECT_TIMEOUT_MS, ...signalOf(options) });
    return zk;
  } catch (error) {
    await zk.close();
    throw error;
  }
}

/**
 * A ZooKeeper client: one session at a time, continued over reconnects, replaced when it is lost.
 *
 * Requests of one client are executed in the order they were made, also when nobody waits for one before
 * making the next; all that are made in one tick leave in one write. Reads that a lost connection left
 * without an answer are repeated by themselves; writes never are, because they may have happened: those
 * reject with `outcome: 'unknown'`.
 *
 * Not promised: a client of yesterday's session is not the holder of yesterday's ephemeral nodes. After
 * `lost`, the session is another one, with no nodes and no watches.
 */
export class ZooKeeper implements AsyncDisposable {
  /** The servers that it was given, as text. @internal */
  readonly servers: readonly string[];
  /** What a wait of so long for a connection, in vain, is to end with: it says what became of the attempts. @internal */
  readonly unreachable: (timeoutMs: number) => UnreachableError;
  readonly #log: Log;
  readonly #keeper: SessionKeeper;
  readonly #requester: Requester;
  readonly #chroot: Chroot;
  readonly #clock: Clock;
  readonly #watchers = new WeakMap<WatchListener, Watcher>();

  private constructor(config: ClientConfig) {
    this.#log = config.log;
    this.#chroot = new Chroot(config.chroot);
    this.#clock = config.clock;
    this.servers = config.servers.map(addressText);
    this.#keeper = new SessionKeeper(config);
    this.unreachable = (timeoutMs) => this.#keeper.unreachable(timeoutMs);
    this.#requester = new Requester(this.#keeper, config.clock);
  }

  /** Opens a client without waiting: what is asked of it waits for its first session. */
  static open(servers: string, options: ConnectOptions = {}): ZooKeeper {
    return new ZooKeeper(readOptions(servers, options));
  }

  /** The session of now. Another object after a loss. */
  get session(): Session {
    return this.#keeper.session;
  }

  /** Resolves with the session once it is connected. */
  connected(options: CallOptions = {}): Promise<Session> {
    checkCallOptions('connected', options, callOptionNames);
    return this.#keeper.whenConnected(options.timeoutMs ?? CONNECT_TIMEOUT_MS, options.signal);
  }

  /** Adds a listener for one of the client's events and returns the function that removes it. */
  on<K extends keyof ClientEvents>(name: K, listener: (event: ClientEvents[K]) => unknown): () => void {
    checkChoice('event', name, clientEventNames);
    checkFunction('listener', listener);
    return this.#keeper.events.on(name, listener);
  }

  off<K extends keyof ClientEvents>(name: K, listener: (event: ClientEvents[K]) => unknown): void {
    checkChoice('event', name, clientEventNames);
    this.#keeper.events.off(name, listener);
  }

  /**
   * Ends the session and the client. The server removes the session's ephemeral nodes at once; if it cannot be
   * reached, it does so when the session times out. A bound is one of the wait: the client is closed all the same.
   */
  close(options: CallOptions = {}): Promise<void> {
    checkCallOptions('close', options, callOptionNames);
    return boundedWait(this.#clock, 'close', this.#keeper.close(), options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Nodes

  /**
   * Makes a node; returns its path (with the number, if sequential) and its stat.
   *
   * @throws ZK_NODE_EXISTS, ZK_NO_NODE (the parent), ZK_NO_CHILDREN_FOR_EPHEMERALS, ZK_NO_AUTH, ZK_INVALID_ACL.
   */
  create(
    path: string,
    data: NodeData = '',
    options: CreateOptions & RequestOptions = {},
  ): Promise<{ path: string; stat: Stat }> {
    const wire = rooted(createOp(path, data, options), this.#chroot);
    const shape = (reply: { path: string; stat: Stat }) => ({
      path: this.#chroot.fromServer(reply.path),
      stat: reply.stat,
    });
    if (wire.op === 'createTtl') {
      return this.#requester.request(
        { operation: operations.createTtl, record: wire.request, path, shape },
        options,
      );
    }
    return this.#requester.request(
      { operation: operations[wire.op], record: wire.request, path, shape },
      options,
    );
  }

  /** Removes a node, if `version` is left out or its version. @throws ZK_NO_NODE, ZK_BAD_VERSION, ZK_NOT_EMPTY. */
  delete(path: string, options: VersionedOptions = {}): Promise<void> {
    const record = { path: this.#path(path), version: checkVersion(options.version) };
    return this.#requester.request(
      { operation: operations.delete, record, path, shape: () => undefined },
      options,
    );
  }

  /** The node's stat, or undefined if there is no such node. A watch is set in both cases. */
  exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    const { record, watch } = this.#read(path, 'exists', options);
    return this.#requester.request<{ path: string; watch: boolean }, { stat: Stat }, Stat | undefined>(
      {
        operation: operations.exists,
        record,
        path,
        watch,
        shape: (reply) => reply.stat,
        shapeRefusal: (code) => (code === errorCodes['no-node'] ? { value: undefined } : undefined),
      },
      options,
    );
  }

  /** @throws ZK_NO_NODE, ZK_NO_AUTH. */
  get(path: string, options: ReadOptions = {}): Promise<NodeState> {
    const { record, watch } = this.#read(path, 'data', options);
    return this.#requester.request(
      {
        operation: operations.getData,
        record,
        path,
        watch,
        shape: (reply) => ({ data: reply.data as Buffer | null, stat: reply.stat }),
      },
      options,
    );
  }

  /** Replaces a node's data, if `version` is left out or its version. @throws ZK_NO_NODE, ZK_BAD_VERSION. */
  set(path: string, data: NodeData, options: VersionedOptions = {}): Promise<Stat> {
    const record = { path: this.#path(path), data: checkData(data), version: checkVersion(options.version) };
    return this.#requester.request(
      { operation: operations.setData, record, path, shape: (reply) => reply.stat },
      options,
    );
  }

  /** The names of a node's children, in no particular order. @throws ZK_NO_NODE. */
  children(path: string, options: ReadOptions = {}): Promise<string[]> {
    const { record, watch } = this.#read(path, 'children', options);
    return this.#requester.request(
      {
        operation: operations.getChildren,
        record,
        path,
        watch,
        shape: (reply) => reply.children as string[],
      },
      options,
    );
  }

  /** The names of a node's children and the node's stat, of one moment. @throws ZK_NO_NODE. */
  childrenWithStat(path: string, options: ReadOptions = {}): Promise<{ children: string[]; stat: Stat }> {
    const { record, watch } = this.#read(path, 'children', options);
    return this.#requester.request(
      {
        operation: operations.getChildren2,
        record,
        path,
        watch,
        shape: (reply) => ({ children: reply.children as string[], stat: reply.stat }),
      },
      options,
    );
  }

  /** How many nodes there are below this one, at any depth. Needs ZooKeeper 3.6. */
  countDescendants(path: string, options: RequestOptions = {}): Promise<number> {
    const record = { path: this.#path(path) };
    return this.#requester.request(
      { operation: operations.getAllChildrenNumber, record, path, shape: (reply) => reply.totalNumber },
      options,
    );
  }

  /** The ephemeral nodes of this session whose path begins with `prefix`. Needs ZooKeeper 3.6. */
  ephemerals(prefix = '/', options: RequestOptions = {}): Promise<string[]> {
    const record = { prefixPath: this.#path(prefix) };
    const shape = (reply: { ephemerals: readonly string[] }) =>
      reply.ephemerals.map((path) => this.#chroot.fromServer(path));
    return this.#requester.request(
      { operation: operations.getEphemerals, record, path: prefix, shape },
      options,
    );
  }

  getAcl(path: string, options: RequestOptions = {}): Promise<{ acl: AclEntry[]; stat: Stat }> {
    return this.#requester.request(
      {
        operation: operations.getAcl,
        record: { path: this.#path(path) },
        path,
        shape: (reply) => ({ acl: fromWireAcl(reply.acl), stat: reply.stat }),
      },
      options,
    );
  }

  /** Replaces a node's access list; `version` is compared with the stat's `aversion`. */
  setAcl(path: string, acl: readonly AclEntry[], options: VersionedOptions = {}): Promise<Stat> {
    const record = { path: this.#path(path), acl: toWireAcl(acl), version: checkVersion(options.version) };
    return this.#requester.request(
      { operation: operations.setAcl, record, path, shape: (reply) => reply.stat },
      options,
    );
  }

  /**
   * Lets the server catch up with its leader: reads made after it see all that was written before it.
   *
   * A leader answers a `sync` of its own clients at once, and may be a moment behind what it has just had its
   * followers commit. `by: 'quorum'` closes that gap, by a write that changes nothing, and is right on every server.
   */
  sync(path = '/', options: SyncOptions = {}): Promise<void> {
    const record = { path: this.#path(path) };
    const by = checkChoice('by', options.by ?? 'leader', { leader: 0, quorum: 0 });
    const shape = () => undefined;
    return by === 'quorum'
      ? this.#requester.request({ operation: operations.multi, record: [], shape }, options)
      : this.#requester.request({ operation: operations.sync, record, path, shape }, options);
  }

  // Several at once

  /**
   * Does all of these writes, or none, as one transaction.
   *
   * ```ts
   * const [created, , stat] = await zk.multi([ops.create('/a', 'x'), ops.check('/b', 3), ops.set('/c', 'y')]);
   * ```
   *
   * @throws MultiError with the index and condition of the operation that was refused; nothing happened then.
   */
  multi<const Ops extends readonly MultiWrite<unknown>[]>(
    writes: Ops,
    options: RequestOptions = {},
  ): Promise<MultiResults<Ops>> {
    return this.#requester.request(
      {
        operation: operations.multi,
        record: wiresOf(writes, 'multi', this.#chroot),
        shape: (reply, zxid) =>
          shapeMulti(writes, reply, { chroot: this.#chroot, zxid }) as MultiResults<Ops>,
      },
      options,
    );
  }

  /** Does all of these reads at one moment; each succeeds or fails by itself. Needs ZooKeeper 3.6. */
  multiRead<const Ops extends readonly MultiRead<unknown>[]>(
    reads: Ops,
    options: RequestOptions = {},
  ): Promise<MultiReadResults<Ops>> {
    return this.#requester.request(
      {
        operation: operations.multiRead,
        record: wiresOf(reads, 'multiRead', this.#chroot),
        shape: (reply) => shapeMultiRead(reads, reply) as MultiReadResults<Ops>,
      },
      options,
    );
  }

  /** Makes a node and those above it where they are missing, in one round trip. Existing ones stay as they are. */
  ensurePath(path: string, options: CreateOptions & RequestOptions = {}): Promise<void> {
    return this.#requester.withinBounds('ensurePath', options, (bounded) => ensurePath(this, path, bounded));
  }

  /** Removes a node and everything below it; does nothing if there is no such node. Not one transaction. */
  deleteTree(path: string, options: RequestOptions = {}): Promise<void> {
    return this.#requester.withinBounds('deleteTree', options, (bounded) => deleteTree(this, path, bounded));
  }

  // Watches

  /**
   * Watches a path, or with `persistent-recursive` everything at and below it, until removed. Needs 3.6.
   *
   * After a reconnect the listener gets `watch-gap`: changes in between were not reported. On servers before
   * 3.9, a one-shot watch on the same path of the same client takes a persistent one with it when it fires.
   */
  async addWatch(
    path: string,
    mode: AddWatchMode,
    listener: WatchListener,
    options: RequestOptions = {},
  ): Promise<Watch> {
    checkChoice('mode', mode, addWatchModes);
    checkListener(listener);
    const serverPath = this.#path(path);
    const watcher: Watcher = this.#newWatcher(listener);
    const { session } = this;
    const watch = { kind: mode, path: serverPath, watcher } as const;
    const record = { path: serverPath, mode: addWatchModes[mode] };
    const spec = { operation: operations.addWatch, record, path, watch, shape: () => undefined };
    await this.bounded('addWatch', options, (signal) =>
      this.#requester.request(spec, { ...options, signal, session }),
    );
    const remove = (bounds: CallOptions = {}) => this.#removeWatcher(session, watch, bounds);
    return { remove, [Symbol.asyncDispose]: () => remove() };
  }

  /**
   * The events of a persistent watch, as an async iterable; leaving the loop removes the watch. Ends with a
   * `SessionLostError` when the session is over, and after `watch-removed`. A reader that falls far behind gets a
   * `watch-gap`.
   */
  events(path: string, options: EventsOptions = {}): AsyncGenerator<WatchEvent, void, void> {
    return watchEvents(this, path, options);
  }

  /**
   * What a node holds, now and after each change, as an async iterable; undefined while there is no such
   * node. Goes on over reconnects and lost sessions; states that last less than a round trip may be skipped.
   */
  observe(path: string, options: ObserveOptions = {}): AsyncGenerator<NodeState | undefined> {
    checkObserveOptions('observe', options);
    const read = (watch: WatchListener) => this.get(path, { watch });
    return observe(this, { path, kind: 'data', read }, options.signal);
  }

  /** The names of a node's children, now and after each change; otherwise as `observe`. */
  observeChildren(path: string, options: ObserveOptions = {}): AsyncGenerator<string[] | undefined> {
    checkObserveOptions('observeChildren', options);
    const read = (watch: WatchListener) => this.children(path, { watch });
    return observe(this, { path, kind: 'children', read }, options.signal);
  }

  /**
   * Takes this client's watches on a path away, at the server and here; their listeners get `watch-removed`.
   *
   * @throws ZK_NO_WATCHER if there is none. The types `persistent` and `persistent-recursive` need 3.9.
   */
  removeWatches(path: string, type: WatchType = 'any', options: RequestOptions = {}): Promise<void> {
    checkChoice('type', type, watchTypes);
    const record = { path: this.#path(path), type: watchTypes[type] };
    return this.#requester.request(
      { operation: operations.removeWatches, record, path, shape: () => undefined },
      options,
    );
  }

  /**
   * Takes one listener's one-shot watch away, at the server too if it was the last on that path; also one that a read
   * is setting at that moment. Does nothing if it is not there, or has fired. Other listeners lose nothing. Where the
   * server's watch has to stay for now, because another one would be removed with it, the client removes it later.
   */
  unwatch(
    path: string,
    kind: 'data' | 'exists' | 'children',
    listener: WatchListener,
    options: CallOptions = {},
  ): Promise<void> {
    checkCallOptions('unwatch', options, callOptionNames);
    const watcher = this.#watchers.get(listener);
    if (!watcher) return Promise.resolve();
    return this.#removeWatcher(this.session, { kind, path: this.#path(path), watcher }, options);
  }

  /**
   * Sets one-shot watches on several nodes by one request: on those that are there (`data`), and on those that are not
   * (`exists`). One whose node was changed after transaction `zxid`, or is not as expected, is told so at once, before
   * the answer. Of nodes that may not be read, a server may report nothing. @internal
   */
  watchSince(
    zxid: bigint,
    watches: readonly {
      readonly kind: 'data' | 'exists';
      readonly path: string;
      readonly listener: WatchListener;
    }[],
    options: RequestOptions = {},
  ): Promise<void> {
    const intents = watches.map(
      ({ kind, path, listener }) => this.#intent(this.#path(path), kind, listener)!,
    );
    const pathsOf = (wanted: WatchIntent['kind']) =>
      intents.filter(({ kind }) => kind === wanted).map(({ path }) => path);
    return this.#requester.request(
      {
        operation: operations.setWatches,
        record: {
          relativeZxid: zxid,
          dataWatches: pathsOf('data'),
          existWatches: pathsOf('exists'),
          childWatches: [],
        },
        watches: intents,
        shape: () => undefined,
      },
      options,
    );
  }

  /** Whether the server has a watch of this type by this connection on the path. */
  hasWatches(path: string, type: WatchType = 'any', options: RequestOptions = {}): Promise<boolean> {
    checkChoice('type', type, watchTypes);
    return this.#requester.request<{ path: string; type: number }, undefined, boolean>(
      {
        operation: operations.checkWatches,
        record: { path: this.#path(path), type: watchTypes[type] },
        path,
        shape: () => true,
        shapeRefusal: (code) => (code === errorCodes['no-watcher'] ? { value: false } : undefined),
      },
      options,
    );
  }

  // Identity and ensemble

  /**
   * Presents credentials, now and on every later connection.
   *
   * @throws ZK_AUTH_FAILED; the client is of no more use then, since every connection would be refused.
   */
  addAuth(scheme: string, auth: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    checkCallOptions('addAuth', options, callOptionNames);
    const adding = this.#keeper.addAuth(scheme, auth);
    adding.catch(() => {}); // It goes on behind a wait that is given up.
    return this.#requester.bounded('addAuth', options, () => adding);
  }

  /** Who the server takes this connection for. Needs ZooKeeper 3.7. */
  whoAmI(options: RequestOptions = {}): Promise<ClientInfo[]> {
    return this.#requester.request(
      { operation: operations.whoAmI, record: undefined, shape: (reply) => [...reply.clientInfo] },
      options,
    );
  }

  /** The ensemble's configuration. */
  config(options: ReadOptions = {}): Promise<NodeState> {
    return this.#requester.request(
      {
        operation: operations.getData,
        record: { path: CONFIG_PATH, watch: options.watch !== undefined },
        path: CONFIG_PATH,
        watch: this.#intent(CONFIG_PATH, 'data', options.watch),
        shape: (reply) => ({ data: reply.data as Buffer | null, stat: reply.stat }),
      },
      options,
    );
  }

  /** Changes the ensemble's membership. @throws ZK_RECONFIG_DISABLED, ZK_NO_AUTH, ZK_NEW_CONFIG_NO_QUORUM. */
  reconfig(change: ReconfigChange, options: RequestOptions = {}): Promise<NodeState> {
    return this.#requester.request(
      {
        operation: operations.reconfig,
        record: {
          joiningServers: change.joining ?? null,
          leavingServers: change.leaving ?? null,
          newMembers: change.newMembers ?? null,
          curConfigId: change.fromConfig ?? -1n,
        },
        shape: (reply) => ({ data: reply.data as Buffer | null, stat: reply.stat }),
      },
      options,
    );
  }

  /** A path as the server knows it, and clients with other chroots. @internal */
  serverPath(path: string): string {
    return this.#chroot.toServer(path);
  }

  /**
   * Bounds a call of several requests, to which its signal is to be given: by its options, or by the time for which no
   * server answers. @internal
   */
  bounded<T>(what: string, options: CallOptions, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#requester.bounded(what, options, run);
  }

  // The way down

  #path(path: string): string {
    checkPath(path);
    return this.#chroot.toServer(path);
  }

  #read(path: string, kind: WatchIntent['kind'], { watch }: ReadOptions) {
    const serverPath = this.#path(path);
    return {
      record: { path: serverPath, watch: watch !== undefined },
      watch: this.#intent(serverPath, kind, watch),
    };
  }

  #intent(
    path: string,
    kind: WatchIntent['kind'],
    listener: WatchListener | undefined,
  ): WatchIntent | undefined {
    if (listener === undefined) return undefined;
    checkListener(listener);
    const watcher = this.#watchers.get(listener) ?? this.#newWatcher(listener);
    this.#watchers.set(listener, watcher);
    return { kind, path, watcher };
  }

  /** What the session calls for a listener: the chroot taken off, and the listener kept out of the read loop. */
  #newWatcher(listener: WatchListener): Watcher {
    const onError = (error: unknown) => this.#keeper.listenerFailed(error);
    return (event) => runSafely(listener, { ...event, path: this.#chroot.fromServer(event.path) }, onError);
  }

  /** Takes the watch away at the server only if nothing else of this client needs it: the server has one for all. */
  async #removeWatcher(
    session: Session,
    { kind, path, watcher }: WatchIntent,
    bounds: CallOptions = {},
  ): Promise<void> {
    if (session !== this.session) return; // It went with its session.
    const { watches } = this.#keeper.driver.machine;
    if (!watches.forget(kind, path, watcher)) return;
    const type = watches.removable(kind, path);
    if (type === undefined) return; // The session removes it as soon as it can.
    try {
      const record = { path, type: watchTypes[type] };
      const { signal, ...others } = bounds;
      const removing = this.#requester.request(
        { operation: operations.removeWatches, record, path, shape: () => undefined },
        { ...others, session },
      );
      await orAbort(removing, signal); // It is removed also when the signal has fired before.
    } catch (error) {
      if (bounds.signal?.aborted || error instanceof RequestTimeoutError) throw error;
      const gone = isServerError(error, 'no-watcher') || error instanceof SessionLostError;
      if (!gone) this.#log('debug', 'a watch was left at the server', { path, error });
    }
  }
}

const CONFIG_PATH = '/zookeeper/config';

function signalOf({ signal }: { readonly signal?: AbortSignal | undefined }): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}
