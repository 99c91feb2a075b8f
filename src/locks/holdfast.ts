import { hostname } from 'node:os';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { checkOptionNames, givenOf, type OptionNames } from '../base/option-names.ts';
import { systemRandom } from '../base/random.ts';
import { type AclEntry, checkAcl } from '../client/acl.ts';
import { checkChoice, checkDuration } from '../client/arguments.ts';
import { type CallOptions, callOptionNames, checkCallOptions } from '../client/call-options.ts';
import { type ConnectOptions, connectOptionNames } from '../client/connect-options.ts';
import { connect as connectZooKeeper, type ZooKeeper } from '../client/zookeeper.ts';
import { floorPathOf } from '../queue/floor-node.ts';
import { type Neighbours, neighboursAt } from '../queue/neighbours.ts';
import { ZooKeeperStore } from '../queue/zookeeper-store.ts';
import type { AuditRecord } from './audit-log.ts';
import { connectLocally, LOCAL } from './connect-locally.ts';
import { optionsFromEnvironment } from './environment.ts';
import { Inspection, type LockInfo } from './inspection.ts';
import {
  type ForceReleaseOptions,
  forceReleaseNames,
  Intervention,
  type RevokeOptions,
  revokeNames,
} from './intervention.ts';
import { LastingHolds } from './lasting-holds.ts';
import { LeaderElection } from './leader-election.ts';
import type { Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { checkFolder, checkName, checkNames } from './lock-name.ts';
import { LockRegistry } from './lock-registry.ts';
import { MultiLock } from './multi-lock.ts';
import { Mutex } from './mutex.ts';
import { describePolicy, isSamePolicy, type MutexOptions, readMutexOptions } from './mutex-options.ts';
import { checkOwnerFacts, checkPeopleText, ownerEncoder } from './owner.ts';
import { ReadWriteLock } from './read-write-lock.ts';
import { Semaphore } from './semaphore.ts';
import { SharedMutex } from './shared-mutex.ts';
import { SimpleLock } from './simple-lock.ts';
import { StoreTokens, type TokenState } from './token-floor.ts';
import { LockManager } from './web-locks.ts';

/** A hold that lasts this long has its node watched; a shorter one pays nothing for it. */
const LASTING_MS = 100;

/** Where the locks are, and who we are. */
export interface HoldfastOptions extends ConnectOptions {
  /**
   * `host:port,host:port/chroot`; `HOLDFAST_SERVERS` if left out. Without either, or with `'local'`, the server of this
   * user on this machine, which is started if need be.
   */
  readonly servers?: string;
  /** The folder of all locks; `HOLDFAST_ROOT` or `/locks` if left out. Curator's path of a lock is this and the name. */
  readonly root?: string;
  /**
   * Where batons appear for a moment; `/holdfast/batons` if left out. All who share locks must say the same: the floor
   * of their tokens is kept beside it, in `token-floor`.
   */
  readonly batonFolder?: string;
  /** Where it is written down who took a lock from its holder; `/holdfast/audit` if left out. */
  readonly auditFolder?: string;
  /**
   * How long one who waited holds back when whoever was ahead vanished without announcing its release; 0 if left out.
   * All who share locks should say the same, since only they announce every release.
   */
  readonly lockDelayMs?: number;
  /**
   * Through which clients the program writes to ZooKeeper while it holds locks of this connection. `this-connection`
   * declares that all of it goes through `zk` of this very connection, or that none of it goes to ZooKeeper: locks are
   * handed over between connections of one process with less waiting then. Where that is not true, a holder may read what
   * was there before its predecessor wrote. `any-client` if left out.
   */
  readonly writesUnderLocks?: 'any-client' | 'this-connection';
  /** The program's name, for people who look at a queue; the script's if left out. */
  readonly app?: string;
  /** More for people to see. No secrets: anyone who may read the lock reads this. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Who may do what with contenders' nodes; anyone anything if left out. */
  readonly acl?: readonly AclEntry[];
  /** The same for the folders that are made on demand. Deleting a contender is checked here. */
  readonly folderAcl?: readonly AclEntry[];
  /** For simulations: the process that contenders say they are of. */
  readonly process?: { readonly host: string; readonly pid: number };
  /** For simulations: the places of that process. @internal */
  readonly neighbours?: Neighbours;
}

/**
 * Connects, and gives the locks of that connection. The servers come first, as in `holdfast/zookeeper`, or stand among
 * the options.
 *
 * ```ts
 * await using holdfast = await connect('zk1:2181,zk2:2181,zk3:2181/app');
 * await using lease = await holdfast.mutex('member-123').acquire({ timeoutMs: 5_000 });
 * ```
 *
 * @throws TypeError, RangeError for a bad option, or one that does not exist; ZK_UNREACHABLE, ZK_AUTH_FAILED as the
 * client does; HOLDFAST_LOCAL_SERVER if the local one cannot be started.
 */
export async function connect(
  first: string | HoldfastOptions = {},
  others: Omit<HoldfastOptions, 'servers'> = {},
): Promise<Holdfast> {
  const given = readConnectArguments(first, others);
  const options: HoldfastOptions = { ...optionsFromEnvironment(process.env), ...givenOf(given) };
  const facts = readFacts(options);
  const { servers = LOCAL } = options;
  if (options.servers === undefined && process.env['NODE_ENV'] === 'production') {
    throw new TypeError(
      'servers: nothing given and HOLDFAST_SERVERS is not set; in production, where other machines are to be excluded, servers are needed, or "local" on purpose',
    );
  }
  const source = given.servers !== undefined ? 'options' : options.servers ? 'HOLDFAST_SERVERS' : 'default';
  options.log?.('info', 'connecting', { servers, source });
  const clientOptions = clientOptionsOf(options);
  const zk =
    servers === LOCAL ? await connectLocally(clientOptions) : await connectZooKeeper(servers, clientOptions);
  return new Holdfast(zk, options, { ...facts, servers });
}

/** Both ways to call `connect`, as options. */
function readConnectArguments(
  first: string | HoldfastOptions,
  others: Omit<HoldfastOptions, 'servers'>,
): HoldfastOptions {
  if (typeof first !== 'string') {
    checkOptionNames('connect', first, holdfastOptionNames);
    if (Object.keys(others).length > 0)
      throw new TypeError(
        'connect: two objects of options given; servers as a string, or one object, is needed',
      );
    return first;
  }
  const { servers: _, ...names } = holdfastOptionNames;
  checkOptionNames('connect', others, names);
  return { ...others, servers: first };
}

/** The options that are the client's own: it refuses all others. */
function clientOptionsOf(options: HoldfastOptions): ConnectOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([name]) => Object.hasOwn(connectOptionNames, name)),
  );
}

const holdfastOptionNames: OptionNames<HoldfastOptions> = {
  ...connectOptionNames,
  servers: true,
  root: true,
  batonFolder: true,
  auditFolder: true,
  lockDelayMs: true,
  writesUnderLocks: true,
  app: true,
  labels: true,
  acl: true,
  folderAcl: true,
  process: true,
  neighbours: true,
};

interface Facts {
  readonly root: string;
  readonly batonFolder: string;
  readonly auditFolder: string;
}

/** The locks of one connection. The same name gives the same object. */
export class Holdfast implements AsyncDisposable {
  /** The servers that were meant: a connect string, or `local` for the server of this user on this machine. */
  readonly servers: string;
  /** The client underneath, for everything that is not a lock. */
  readonly zk: ZooKeeper;
  /** The same locks in the shape of the browser's `navigator.locks`. */
  readonly locks: LockManager;
  readonly #context: LockContext;
  readonly #inspection: Inspection;
  readonly #intervention: Intervention;
  readonly #tokens: StoreTokens;
  readonly #registry = new LockRegistry();

  /** @internal */
  constructor(
    zk: ZooKeeper,
    options: HoldfastOptions,
    { root, batonFolder, auditFolder, servers }: Facts & { readonly servers: string },
  ) {
    this.servers = servers;
    this.zk = zk;
    const log = options.log ?? silentLog;
    const clock = options.clock ?? systemClock;
    const { app = programName(), labels, acl, folderAcl } = options;
    const { host, pid } = options.process ?? { host: hostname(), pid: process.pid };
    const owner = { host, pid, app, ...(labels && { labels }) };
    const store = new ZooKeeperStore({
      zk,
      clock,
      random: options.random ?? systemRandom,
      log,
      neighbours: options.neighbours ?? neighboursAt(zk.servers),
      carriesAllWrites: options.writesUnderLocks === 'this-connection',
      batonFolder,
      entryAcl: acl,
      folderAcl,
    });
    this.#inspection = new Inspection(store, root);
    this.#context = {
      zk,
      clock,
      lockDelayMs: options.lockDelayMs ?? 0,
      log,
      root,
      owner,
      describeOwner: ownerEncoder(owner),
      young: new LastingHolds(clock, LASTING_MS),
      registry: this.#registry,
      store,
      inspection: this.#inspection,
      listenerFailed: (error) => log('error', 'a listener of a lock threw', { error }),
    };
    this.#tokens = new StoreTokens(store.facts);
    this.#intervention = new Intervention(this.#context, this.#inspection, auditFolder);
    this.locks = new LockManager(this, this.#context);
    store.current.tokens.prepare();
  }

  /** The folder of all locks: the node of lock `a` is `<root>/a`. */
  get root(): string {
    return this.#context.root;
  }

  /**
   * A fair, exclusive, re-entrant lock; Curator's `InterProcessMutex`. With `cache` or `handOff` the tasks of this
   * connection share one place in its queue.
   *
   * @throws RangeError if it has other options in this connection already.
   */
  mutex(name: string, options: MutexOptions = {}): Mutex {
    const policy = readMutexOptions(options);
    const mutex = this.#lock('mutex', name, () =>
      policy ? new SharedMutex(this.#context, name, policy) : new Mutex(this.#context, name),
    );
    if (!isSamePolicy(mutex.policy, policy)) {
      throw new RangeError(
        `options: ${describePolicy(policy)} given; mutex ${name} has ${describePolicy(mutex.policy)} in this connection`,
      );
    }
    return mutex;
  }

  /** Readers share, writers exclude; Curator's `InterProcessReadWriteLock`. */
  readWriteLock(name: string): ReadWriteLock {
    return this.#lock('read-write', name, () => new ReadWriteLock(this.#context, name));
  }

  /** Up to `permits` holders at once; Curator's `InterProcessSemaphoreV2`. */
  semaphore(name: string, options: { readonly permits: number }): Semaphore {
    checkOptionNames('semaphore', options, { permits: true });
    const { permits } = options;
    if (!Number.isInteger(permits) || permits < 1) {
      throw new RangeError(`permits: ${String(permits)} given; an integer from 1 is needed`);
    }
    const semaphore = this.#lock('semaphore', name, () => new Semaphore(this.#context, name, { permits }));
    if (semaphore.permits !== permits) {
      throw new RangeError(
        `permits: ${permits} given; semaphore ${name} has ${semaphore.permits} in this process`,
      );
    }
    return semaphore;
  }

  /** Several mutexes as one, all or nothing; no deadlock among those who take them this way. */
  multiLock(names: readonly string[]): MultiLock {
    checkNames(names);
    const sorted = [...names].sort();
    return this.#registry.get(['multi', ...sorted], () => new MultiLock(this.#context, sorted));
  }

  /** One leader among many; Curator's `LeaderLatch`. `id` is what others see; `host:pid` if left out. */
  election(name: string, options: { readonly id?: string } = {}): LeaderElection {
    checkName(name);
    checkOptionNames('election', options, { id: true });
    const { id } = options;
    if (id !== undefined) checkPeopleText('id', id);
    const key = id === undefined ? ['election', name] : ['election', name, id];
    return this.#registry.get(key, () => new LeaderElection(this.#context, name, options));
  }

  /** The textbook lock that does not scale: unfair, and every release wakes all who wait. */
  simpleLock(name: string): SimpleLock {
    return this.#lock('simple', name, () => new SimpleLock(this.#context, name));
  }

  // These end at `timeoutMs` or by `signal`, and without a `timeoutMs` when no server has answered
  // anything for one session timeout, and 15 s at least.

  /**
   * Every lock that somebody holds or waits for, and some that are free.
   *
   * @throws ZK_UNREACHABLE, ZK_REQUEST_TIMEOUT, the signal's own reason, as all that follow.
   */
  async list(options: CallOptions = {}): Promise<LockInfo[]> {
    checkCallOptions('list', options, callOptionNames);
    return this.zk.bounded('list', options, (signal) => this.#inspection.list({ signal }));
  }

  /** Who holds a lock, who waits, since when. */
  async inspect(name: string, options: CallOptions = {}): Promise<LockInfo> {
    checkName(name);
    checkCallOptions('inspect', options, callOptionNames);
    return this.zk.bounded(`inspect ${name}`, options, (signal) =>
      this.#inspection.inspect(name, { signal }),
    );
  }

  /**
   * Asks the holders of a lock to let go: their lease's signal fires, and Curator's revocation listeners are called.
   * `holder` asks one only; with a `reason`, a record is left. Resolves with how many were asked; whether they let go
   * is up to them. Given up, it may have asked all the same.
   *
   * @throws LOCK_WRONG_KIND for an election: Curator's `LeaderLatch` must not find a leader's node changed.
   */
  async revoke(name: string, options: RevokeOptions = {}): Promise<number> {
    checkName(name);
    checkCallOptions('revoke', options, revokeNames);
    return this.zk.bounded(`revoke ${name}`, options, (signal) =>
      this.#intervention.revoke(name, options, { signal }),
    );
  }

  /**
   * Takes a lock from its holder by removing its node: the next in the queue holds at once. A holder that uses
   * Holdfast is told, but only after that; one that uses Curator never is. Only a fenced resource is safe. Leaves a
   * record, in the same transaction. Given up, it may have done both all the same.
   *
   * @throws LOCK_NOT_HOLDER unless exactly that one holds it now; LOCK_WRONG_KIND for a simple lock.
   */
  async forceRelease(name: string, options: ForceReleaseOptions): Promise<AuditRecord> {
    checkName(name);
    checkCallOptions('forceRelease', options, forceReleaseNames);
    for (const key of ['holder', 'reason'] as const) {
      const value: unknown = options[key];
      if (typeof value !== 'string' || value.trim() === '') throw new TypeError(`${key}: a text is needed`);
    }
    return this.zk.bounded(`forceRelease ${name}`, options, (signal) =>
      this.#intervention.forceRelease(name, options, { signal }),
    );
  }

  /** Who was asked for a lock, or lost it by force: the last hundred records, the oldest first. */
  async audit(name: string, options: CallOptions = {}): Promise<AuditRecord[]> {
    checkName(name);
    checkCallOptions('audit', options, callOptionNames);
    return this.zk.bounded(`audit ${name}`, options, (signal) =>
      this.#intervention.records(name, { signal }),
    );
  }

  /** How far the tokens of this store have come, and what all later ones are above. */
  async tokens(options: CallOptions = {}): Promise<TokenState> {
    checkCallOptions('tokens', options, callOptionNames);
    return this.zk.bounded('tokens', options, (signal) => this.#tokens.state({ signal }));
  }

  /**
   * Makes every token that is given from now on larger than `above`, for all who share these locks: after a move from
   * another store, whose tokens resources have admitted. Waiters and holders keep the tokens they have. Does nothing if
   * tokens are above that already.
   *
   * @throws TypeError, RangeError for what is no token, or one above 2^62; ZK_FOREIGN_DATA, ZK_NO_AUTH.
   */
  async raiseTokens(above: bigint, options: CallOptions = {}): Promise<TokenState> {
    checkCallOptions('raiseTokens', options, callOptionNames);
    return this.zk.bounded('raiseTokens', options, (signal) => this.#tokens.raise(above, { signal }));
  }

  /** Ends the session: everything it holds is free at once. A bound is one of the wait: it is closed all the same. */
  close(options: CallOptions = {}): Promise<void> {
    const closing = this.zk.close(options);
    this.#context.young.end();
    return closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #lock<T extends Lock | ReadWriteLock>(kind: string, name: string, make: () => T): T {
    checkName(name);
    return this.#registry.get([kind, name], make);
  }
}

const LOCK_DELAY_MS_MAX = 60 * 60 * 1_000;

function readFacts(options: HoldfastOptions): Facts {
  if (options.lockDelayMs !== undefined) {
    checkDuration('lockDelayMs', options.lockDelayMs, { min: 0, max: LOCK_DELAY_MS_MAX });
  }
  if (options.writesUnderLocks !== undefined)
    checkChoice('writesUnderLocks', options.writesUnderLocks, { 'any-client': 0, 'this-connection': 0 });
  const { root = '/locks', batonFolder = '/holdfast/batons', auditFolder = '/holdfast/audit' } = options;
  for (const [name, path] of Object.entries({ root, batonFolder, auditFolder })) {
    checkFolder(name, path);
  }
  checkOwnerFacts({
    ...(options.app !== undefined && { app: options.app }),
    ...(options.labels !== undefined && { labels: options.labels }),
  });
  for (const name of ['acl', 'folderAcl'] as const) {
    const entries = options[name];
    if (entries !== undefined) checkAcl(name, entries);
  }
  for (const [name, path] of Object.entries({ batonFolder, auditFolder })) {
    if (path === root || path.startsWith(`${root}/`)) {
      throw new TypeError(`${name} ${path}: it is inside ${root}, where every node is a lock`);
    }
  }
  if (floorPathOf(batonFolder) === root) {
    throw new TypeError(`root ${root}: the floor of tokens is kept there, beside batonFolder ${batonFolder}`);
  }
  return { root, batonFolder, auditFolder };
}

function programName(): string {
  const script = process.argv[1];
  return script === undefined ? 'node' : script.slice(script.lastIndexOf('/') + 1);
}
