import { fraction, type Random, seededRandom } from '../../src/base/random.ts';
import { opcodeOfDeleteContainer, operations, xids } from '../../src/protocol/operations.ts';
import { digestIdentity } from '../../src/server/access.ts';

/**
 * One request. Strings in the record that begin with ~ are paths inside the scenario's own part of the tree.
 * A record is what goes on the wire, so it may hold what no client would send: null where a string is due.
 */
export interface Call {
  readonly name: string;
  readonly opcode: number;
  readonly record?: Readonly<Record<string, unknown>>;
  /** The operations of a multi or multiRead, in place of a record. */
  readonly ops?: readonly Call[];
  /** What setWatches claims to have seen: everything up to this step. */
  readonly seenUntil?: number;
  /** Only this fraction of the body is sent. */
  readonly keep?: number;
  /** This many bytes follow the body. */
  readonly junkBytes?: number;
  /** In place of the next one. */
  readonly xid?: number;
}

export type Step =
  | { readonly kind: 'request'; readonly session: number; readonly call: Call }
  /** Several at once, without waiting. */
  | { readonly kind: 'burst'; readonly session: number; readonly calls: readonly Call[] }
  | { readonly kind: 'drop'; readonly session: number }
  | {
      readonly kind: 'connect';
      readonly session: number;
      readonly as: 'itself' | 'wrong password' | 'unknown session' | 'short password';
      readonly timeoutMs: number;
      readonly seen: 'nothing' | 'all' | 'the future';
      readonly readOnly: boolean | null;
    }
  /** Says nothing more until the server has given the session up. */
  | { readonly kind: 'expire'; readonly session: number };

export interface Scenario {
  readonly seed: number;
  /** What ~ stands for. Empty for scenarios that work on the root, which therefore run alone. */
  readonly prefix: string;
  readonly sessions: number;
  readonly steps: readonly Step[];
}

const STEPS = 40;
const ROOT_EVERY = 12;
const EXPIRY_EVERY = 16;
const TIMEOUT_MS = 30_000;

/** The same scenario for the same seed. */
export function scenarioOf(seed: number): Scenario {
  const onRoot = isOnRoot(seed);
  return new Generator(seed, onRoot).scenario();
}

/** Whether a scenario touches what all share, and so must run alone. */
export function isOnRoot(seed: number): boolean {
  return seed % ROOT_EVERY === 0;
}

/**
 * What makes the outcome of the requests behind it a matter of luck on a real server: an auth packet's answer may
 * overtake others; an unknown opcode closes the connection some time later; a setACL that is still on its way
 * through the pipeline is not yet obeyed by the writes that follow it; and a container with the flags of an ephemeral
 * node is one for that long.
 */
function isFitForBurst({ opcode, name, record }: Call): boolean {
  if (opcode === operations.createContainer.opcode && record?.['flags'] === 1) return false;
  return opcode !== operations.auth.opcode && opcode !== operations.setAcl.opcode && name !== 'unknown';
}

type Weighted<T> = readonly (readonly [weight: number, make: () => T])[];

const OPEN = { perms: 31, id: { scheme: 'world', id: 'anyone' } };
const READABLE = { perms: 1, id: { scheme: 'world', id: 'anyone' } };
const USERS = ['ann:secret', 'bob:hidden'];

class Generator {
  readonly #random: Random;
  readonly #seed: number;
  readonly #onRoot: boolean;
  readonly #names: readonly string[];
  readonly #sessions: number;
  /** Nobody is ever kept from reading: without that, `exists` and `setWatches` differ. */
  readonly #readable: boolean;
  /** Where nodes may be, as far as can be told without looking: most requests should meet one. */
  readonly #likely: string[] = [];
  /** What somebody may be watching. */
  readonly #watched: string[] = [];
  /** How many access lists are not open to all. */
  readonly #closing: number;
  /** No two sessions watch one path: without that, `checkWatches` differs. */
  readonly #apart: boolean;

  constructor(seed: number, onRoot: boolean) {
    this.#random = seededRandom(seed * 2_654_435 + 17);
    this.#seed = seed;
    this.#onRoot = onRoot;
    // Nodes of one root scenario must not be met by the next.
    this.#names = ['a', 'b', 'c'].map((name) => (onRoot ? `${name}${seed}` : name));
    this.#sessions = 2 + this.#below(2);
    this.#readable = this.#chance(0.5);
    this.#apart = this.#chance(0.25);
    this.#closing = this.#pick([0.05, 0.15, 0.6]);
  }

  scenario(): Scenario {
    const steps: Step[] = [];
    if (!this.#onRoot) {
      const record = { path: '~', data: Buffer.from('top'), acl: [OPEN], flags: 0 };
      steps.push({ kind: 'request', session: 0, call: { name: 'create', opcode: 1, record } });
    }
    steps.push(this.#planting());
    const expiresAt = this.#seed % EXPIRY_EVERY === 5 ? 10 + this.#below(25) : -1;
    while (steps.length < STEPS) {
      const session = this.#below(this.#sessions);
      if (steps.length === expiresAt) steps.push({ kind: 'expire', session });
      else steps.push(this.#step(session, steps.length));
    }
    steps.push(this.#inspection());
    return {
      seed: this.#seed,
      prefix: this.#onRoot ? '' : `/d${this.#seed}`,
      sessions: this.#sessions,
      steps,
    };
  }

  /** Some nodes to begin with. */
  #planting(): Step {
    const [first, second] = [`~/${this.#names[0]}`, `~/${this.#names[1]}`];
    const record = (path: string, flags: number) => ({ path, data: this.#data(), acl: [OPEN], flags });
    const ops = [
      { name: 'create', opcode: 1, record: record(first, 0) },
      { name: 'create', opcode: 1, record: record(second, this.#pick([0, 0, 1])) },
      { name: 'create', opcode: 1, record: record(`${first}/x`, this.#pick([0, 1])) },
    ];
    this.#likely.push(first, first, second, `${first}/x`);
    return {
      kind: 'request',
      session: this.#below(this.#sessions),
      call: { name: 'multi', opcode: 14, ops },
    };
  }

  /** Looks at every node there may be, so that what went wrong unseen is told of this scenario and not of the next. */
  #inspection(): Step {
    const paths = new Set(['~', ...this.#names.map((name) => `~/${name}`), ...this.#likely]);
    if (this.#onRoot) for (const path of ['/', '/zookeeper', '/zookeeper/quota']) paths.add(path);
    const calls = [...paths].flatMap((path): Call[] => [
      { name: 'getChildren2', opcode: 12, record: { path, watch: false } },
      { name: 'getData', opcode: 4, record: { path, watch: false } },
      { name: 'getAcl', opcode: 6, record: { path } },
    ]);
    const superUser = { type: 0, scheme: 'digest', auth: Buffer.from('super:admin') };
    return {
      kind: 'burst',
      session: 0,
      calls: [{ name: 'auth', opcode: 100, record: superUser, xid: xids.auth }, ...calls],
    };
  }

  #step(session: number, index: number): Step {
    return this.#weighted<Step>([
      [84, () => ({ kind: 'request', session, call: this.#spoilt(this.#call(session, index)) })],
      [6, () => this.#burst(session, index)],
      [2, () => ({ kind: 'drop', session })],
      [3, () => this.#connect(session)],
      [3, () => ({ kind: 'request', session, call: this.#setWatches(session, index) })],
      [2, () => ({ kind: 'request', session, call: { name: 'closeSession', opcode: -11 } })],
    ]);
  }

  #burst(session: number, index: number): Step {
    const calls: Call[] = [];
    for (let left = 2 + this.#below(4); left > 0; left--) {
      const call = this.#call(session, index);
      if (isFitForBurst(call)) calls.push(call);
    }
    // The last thing: what is behind it is never done, but ZooKeeper answers it or not, as it happens.
    if (this.#chance(0.1)) calls.push({ name: 'closeSession', opcode: -11 });
    return { kind: 'burst', session, calls };
  }

  #connect(session: number): Step {
    return {
      kind: 'connect',
      session,
      as: this.#weighted([
        [6, () => 'itself' as const],
        [2, () => 'wrong password' as const],
        [1, () => 'short password' as const],
        [2, () => 'unknown session' as const],
      ]),
      timeoutMs: this.#pick([TIMEOUT_MS, 20_000, 100_000]),
      seen: this.#weighted([
        [5, () => 'nothing' as const],
        [5, () => 'all' as const],
        [1, () => 'the future' as const],
      ]),
      readOnly: this.#pick([false, true, null]),
    };
  }

  #call(session: number, index: number): Call {
    return this.#weighted<Call>([
      [26, () => this.#create()],
      [10, () => ({ name: 'delete', opcode: 2, record: { path: this.#path(), version: this.#version() } })],
      [10, () => this.#setData()],
      [26, () => this.#read(session)],
      [9, () => this.#multi()],
      [3, () => this.#multiRead()],
      [4, () => this.#setAcl()],
      [3, () => ({ name: 'getAcl', opcode: 6, record: { path: this.#path() } })],
      [2 + 6 * this.#closing, () => this.#auth()],
      [6, () => this.#addWatch(session)],
      [5, () => this.#watchType(session)],
      [1, () => this.#setWatches(session, index)],
      [2, () => ({ name: 'getEphemerals', opcode: 103, record: { prefixPath: this.#ephemeralPrefix() } })],
      [2, () => ({ name: 'getAllChildrenNumber', opcode: 104, record: { path: this.#path() } })],
      [1, () => ({ name: 'whoAmI', opcode: 107 })],
      [1, () => ({ name: 'ping', opcode: 11, xid: this.#pick([xids.ping, 7]) })],
      [1, () => ({ name: 'sync', opcode: 9, record: { path: this.#path() } })],
      [1, () => this.#oddity()],
    ]);
  }

  // Writes

  /** Inside a multi, 3.8.0 goes by the flags and forgets the opcode; so there they agree. */
  #create(inMulti = false): Call {
    const { name, opcode } = this.#weighted<{ name: string; opcode: number }>([
      [6, () => ({ name: 'create', opcode: 1 })],
      [5, () => ({ name: 'create2', opcode: 15 })],
      [2, () => ({ name: 'createContainer', opcode: 19 })],
      [2, () => ({ name: 'createTtl', opcode: 21 })],
    ]);
    const flags = inMulti ? this.#agreeingFlags(opcode) : this.#flags(opcode);
    const record: Record<string, unknown> = {
      path: this.#newPath(flags === 2 || flags === 3 || flags === 6),
      data: this.#data(),
      acl: inMulti ? this.#aclWithoutNull() : this.#acl(),
      flags,
    };
    if (opcode === 21) {
      const isTimed = flags === 5 || flags === 6;
      record['ttl'] = this.#pick([
        1000n,
        1000n,
        5000n,
        5000n,
        0xffffffffffn,
        0n,
        isTimed ? -1n : 1n,
        0x10000000000n,
      ]);
    }
    return { name, opcode, record };
  }

  #agreeingFlags(opcode: number): number {
    if (this.#chance(0.04)) return this.#pick([-1, 7, 8, 77]);
    if (opcode === 19) return 4;
    if (opcode === 21) return this.#pick([5, 6]);
    return this.#pick([0, 0, 0, 1, 1, 2, 2, 3]);
  }

  #flags(opcode: number): number {
    if (this.#chance(0.06)) return this.#pick([-1, 7, 8, 77, 4, 5, 6]);
    if (opcode === 19) return this.#pick([4, 4, 4, 4, 0, 1, 2, 5]);
    if (opcode === 21) return this.#pick([5, 5, 5, 6, 6, 6, 0, 4]);
    return this.#pick([0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4]);
  }

  #setData(): Call {
    const record = { path: this.#somePath(), data: this.#data(), version: this.#version() };
    return { name: 'setData', opcode: 5, record };
  }

  #setAcl(): Call {
    let path = this.#somePath();
    // Closing the root to everybody would end every scenario after this one.
    if (this.#onRoot && !path.includes(String(this.#seed))) path = '~/none';
    return {
      name: 'setAcl',
      opcode: 7,
      record: { path, acl: this.#acl(0.6), version: this.#version() },
    };
  }

  #multi(): Call {
    const ops: Call[] = [];
    for (let left = this.#below(5); left > 0; left--) {
      ops.push(
        this.#weighted<Call>([
          [8, () => this.#create(true)],
          [4, () => this.#setData()],
          [3, () => this.#delete()],
          [5, () => this.#check()],
          // Neither belongs into a multi.
          [0.4, () => ({ name: 'getData', opcode: 4, record: { path: this.#path(), watch: false } })],
          [0.3, () => ({ name: 'sync', opcode: 9, record: { path: this.#path() } })],
        ]),
      );
    }
    return { name: 'multi', opcode: 14, ops };
  }

  #delete(): Call {
    return { name: 'delete', opcode: 2, record: { path: this.#somePath(), version: this.#version() } };
  }

  #check(): Call {
    return { name: 'check', opcode: 13, record: { path: this.#somePath(), version: this.#version() } };
  }

  // Reads

  #read(session: number): Call {
    const { name, opcode } = this.#pick([
      { name: 'exists', opcode: 3 },
      { name: 'exists', opcode: 3 },
      { name: 'getData', opcode: 4 },
      { name: 'getData', opcode: 4 },
      { name: 'getChildren', opcode: 8 },
      { name: 'getChildren2', opcode: 12 },
    ]);
    if (opcode === 3 && !this.#readable) return this.#read(session);
    const path = this.#path();
    const watch = this.#zoneOf(session, path) === 'one-shot' && this.#chance(0.7);
    if (watch && typeof path === 'string') this.#watched.push(path);
    return { name, opcode, record: { path, watch } };
  }

  #multiRead(): Call {
    const ops: Call[] = [];
    for (let left = this.#below(4); left > 0; left--) {
      const { name, opcode } = this.#pick([
        { name: 'getData', opcode: 4 },
        { name: 'getChildren', opcode: 8 },
      ]);
      ops.push({ name, opcode, record: { path: this.#path(), watch: false } });
    }
    if (this.#chance(0.05)) ops.push(this.#check());
    return { name: 'multiRead', opcode: 22, ops };
  }

  // Watches

  /**
   * Which kind of watch a session may set on a path. ZooKeeper before 3.9 has one kind per path and lets the newest
   * replace the others; this server has them side by side, as 3.9. So the kinds are kept apart.
   */
  #zoneOf(session: number, path: unknown): 'one-shot' | 'persistent' | 'recursive' | 'nothing' {
    let hash = this.#seed * 31;
    for (const letter of this.#onRoot && path === '~' ? '/' : String(path))
      hash = (Math.imul(hash, 33) + letter.charCodeAt(0)) >>> 0;
    if (this.#apart && (hash >>> 9) % this.#sessions !== session) return 'nothing';
    hash += session * 37;
    return (['one-shot', 'one-shot', 'one-shot', 'persistent', 'recursive'] as const)[(hash >>> 4) % 5]!;
  }

  #addWatch(session: number): Call {
    const path = this.#somePath();
    const zone = this.#zoneOf(session, path);
    if (zone === 'nothing') return this.#addWatch(session);
    if (zone === 'one-shot' && this.#chance(0.85)) return this.#addWatch(session);
    this.#watched.push(path);
    const mode = zone === 'persistent' ? 0 : zone === 'recursive' ? 1 : this.#pick([-1, 2, 99]);
    return { name: 'addWatch', opcode: 106, record: { path, mode } };
  }

  #watchType(session: number): Call {
    const name = this.#apart ? this.#pick(['checkWatches', 'removeWatches'] as const) : 'removeWatches';
    const isWatched = this.#watched.length > 0 && this.#chance(0.7);
    const path = isWatched ? this.#pick(this.#watched.slice(-4)) : this.#somePath();
    const any = this.#pick([3, 3, 3, 0, 9, -1]);
    const zone = this.#zoneOf(session, path);
    // Before 3.9 checkWatches looks for ancestors, and fails where there is no slash to find them by.
    if (zone === 'nothing' || (name === 'checkWatches' && !/^[~/]/.test(path)))
      return this.#watchType(session);
    const type = zone === 'one-shot' ? this.#pick([1, 2, any]) : any;
    return { name, opcode: operations[name].opcode, record: { path, type } };
  }

  #setWatches(session: number, index: number): Call {
    const paths = (zone: string, length: number) =>
      Array.from({ length }, () => this.#path()).filter(
        // A null in a list makes ZooKeeper stop in the middle of it. Only ZooKeeper reports what may not be read.
        (path) =>
          path !== null && this.#zoneOf(session, path) === zone && (this.#readable || zone !== 'one-shot'),
      );
    const two = this.#chance(0.5);
    const record: Record<string, unknown> = {
      relativeZxid: 0n,
      dataWatches: paths('one-shot', 4),
      existWatches: paths('one-shot', 4),
      childWatches: paths('one-shot', 4),
    };
    if (two) {
      record['persistentWatches'] = paths('persistent', 6);
      record['persistentRecursiveWatches'] = paths('recursive', 6);
    }
    if (this.#chance(0.05)) record['dataWatches'] = null;
    return {
      name: two ? 'setWatches2' : 'setWatches',
      opcode: two ? 105 : 101,
      record,
      seenUntil: this.#below(index + 1),
      xid: this.#pick([xids.setWatchesOfCClient, 12]),
    };
  }

  // The connection

  #auth(): Call {
    const [scheme, auth] = this.#weighted<[string, string | null]>([
      [8, () => ['digest', this.#pick(USERS)]],
      [1, () => ['digest', this.#pick(['nocolon', '', ':', 'a:b:c', 'super:admin'])]],
      [1, () => ['nonsense', 'x']],
      [0.5, () => ['ip', '']],
      [0.5, () => ['world', 'anyone']],
    ]);
    return {
      name: 'auth',
      opcode: 100,
      record: { type: 0, scheme, auth: auth === null ? null : Buffer.from(auth) },
      xid: xids.auth,
    };
  }

  #oddity(): Call {
    return this.#weighted<Call>([
      [2, () => ({ name: 'unknown', opcode: this.#pick([0, 10, 9999, -5, 1000]) })],
      [1, () => ({ name: 'deleteContainer', opcode: opcodeOfDeleteContainer })],
      [
        1,
        () => ({
          name: 'reconfig',
          opcode: 16,
          record: { joiningServers: null, leavingServers: '3', newMembers: null, curConfigId: -1n },
        }),
      ],
    ]);
  }

  #ephemeralPrefix(): unknown {
    return this.#pick([null, '', '/', '~', '~/a', '~/a/x', ' ', '~/nobody', 'noslash', this.#path()]);
  }

  /** Sometimes cuts a body short, or puts something behind it. */
  #spoilt(call: Call): Call {
    // Both are read before anything else is done, so their faults have an order of their own.
    if (call.opcode === operations.auth.opcode || call.opcode === operations.reconfig.opcode) return call;
    if (this.#chance(0.03)) return { ...call, keep: fraction(this.#random) };
    if (this.#chance(0.03)) return { ...call, junkBytes: 1 + this.#below(9) };
    return call;
  }

  // Values

  /** A path for a request that has other ways to be wrong, or is told off for a null in another way. */
  #somePath(): string {
    for (;;) {
      const path = this.#path();
      if (typeof path === 'string') return path;
    }
  }

  #path(): unknown {
    if (this.#chance(0.05)) return this.#oddPath();
    if (this.#onRoot && this.#chance(0.25)) return this.#sharedPath();
    if (this.#chance(0.75)) return this.#pick(this.#likely);
    const names = [this.#pick(this.#names), this.#pick(['x', 'y']), 'z'];
    const depth = this.#pick([0, 1, 1, 1, 2, 2, 2, 3]);
    const path = ['~', ...names.slice(0, depth)].join('/');
    return this.#chance(0.15) ? `${path}/${this.#sequenceName()}` : path;
  }

  /** Where to make a node: mostly below one that may be there, where a later request may find it. */
  #newPath(sequential: boolean): string {
    const parent = this.#chance(0.3) ? '~' : this.#somePath();
    const isDeep = parent.split('/').length > 3;
    const name = sequential ? 's' : this.#nameBelow(parent);
    // A sequential node beside the scenario's own part would be numbered by how many scenarios there are.
    const isSibling = (isDeep || this.#chance(0.1)) && !(sequential && parent === '~');
    const path = isSibling ? parent : `${parent}/${name}`;
    this.#likely.push(sequential ? `${path}${this.#sequenceName().slice(1)}` : path);
    return path;
  }

  /** What scenarios on the root make in places they share has their number in it, so that each can be replayed alone. */
  #nameBelow(parent: string): string {
    if (parent === '~') return this.#pick(this.#names);
    const isShared = this.#onRoot && !parent.includes(String(this.#seed));
    return isShared ? `own${this.#seed}` : this.#pick(['x', 'y', 'z']);
  }

  #sequenceName(): string {
    return `s000000000${this.#below(5)}`;
  }

  #oddPath(): unknown {
    const top = this.#pick(this.#names);
    const odd: unknown[] = [
      null,
      'noslash',
      '~//x',
      `~/${top}//x`,
      `~/${top}/`,
      '~/',
      `~/${top}/../b`,
      `~/${top}/./b`,
      `~/${top}/..`,
      `~/${top}/...`,
      `~/${top}\0b`,
      `~/${top}/\u0001`,
      `~/${top}/\u009f`,
      `~/${top}/\ue000`,
      `~/${top}/é`,
      `${top}/x`,
    ];
    // For reads the empty path is the root, which everybody changes.
    if (this.#onRoot) odd.push('', '', '/');
    return this.#pick(odd);
  }

  #sharedPath(): string {
    return this.#pick([
      '/',
      '/',
      '',
      '/zookeeper',
      '/zookeeper/config',
      '/zookeeper/quota',
      `/zookeeper/own${this.#seed}`,
      `/zookeeper/quota/own${this.#seed}`,
      '/zookeeper/nothing',
    ]);
  }

  #data(): Buffer | null {
    return this.#pick([null, Buffer.alloc(0), Buffer.from('one'), Buffer.from('two!'), Buffer.alloc(200, 7)]);
  }

  #version(): number {
    return this.#pick([-1, -1, -1, 0, 0, 0, 1, 1, 2, 3, 5, -2]);
  }

  #acl(closing = this.#closing): unknown {
    const acl = this.#anyAcl(closing);
    return this.#readable && Array.isArray(acl) && acl.length > 0 ? [READABLE, ...(acl as unknown[])] : acl;
  }

  /** ZooKeeper stumbles over a null id, and inside a multi it then uses up no zxid. */
  #aclWithoutNull(): unknown {
    for (;;) {
      const acl = this.#acl();
      if (!JSON.stringify(acl).includes('"id":null')) return acl;
    }
  }

  #anyAcl(closing: number): unknown {
    if (!this.#chance(closing)) return [OPEN];
    const digest = (user: string) => digestIdentity(user);
    const perms = this.#pick([31, 1, 2, 4, 8, 16, 3, 5, 0, 31, 30, 15, 64]);
    const entries: unknown[] = [
      { perms, id: { scheme: 'world', id: 'anyone' } },
      { perms, id: { scheme: 'auth', id: '' } },
      { perms, id: digest(USERS[0]!) },
      { perms, id: digest(USERS[1]!) },
      { perms, id: { scheme: 'ip', id: '127.0.0.1' } },
      {
        perms,
        id: { scheme: 'ip', id: this.#pick(['127.0.0.0/8', '10.0.0.0/8', '127.0.0.2', '0.0.0.0/0']) },
      },
    ];
    const invalid: unknown[] = [
      { perms, id: { scheme: 'world', id: 'someone' } },
      { perms, id: { scheme: 'world', id: null } },
      { perms, id: { scheme: 'digest', id: this.#pick(['nocolon', 'a:b:c', '', ':', 'a:', ':b', 'a:b']) } },
      { perms, id: { scheme: 'digest', id: null } },
      {
        perms,
        id: {
          scheme: 'ip',
          id: this.#pick(['nonsense', '1.2.3', '1.2.3.4/33', '1.2.3.4/x', '', '::1', '1.2.3.4/']),
        },
      },
      { perms, id: { scheme: 'nonsense', id: 'x' } },
      { perms, id: { scheme: '', id: '' } },
      { perms, id: { scheme: 'sasl', id: 'bob' } },
      { perms, id: { scheme: 'super', id: '' } },
    ];
    return this.#weighted<unknown>([
      [12, () => [this.#pick(entries)]],
      [6, () => [this.#pick(entries), this.#pick(entries), this.#pick(entries)]],
      [1, () => [{ perms, id: { scheme: 'auth', id: null } }]],
      [3, () => [this.#pick(invalid)]],
      [1, () => [this.#pick(entries), this.#pick(invalid)]],
      [1, () => []],
      [1, () => null],
    ]);
  }

  // Chance

  #below(end: number): number {
    return Math.floor(fraction(this.#random) * end);
  }

  #chance(probability: number): boolean {
    return fraction(this.#random) < probability;
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)]!;
  }

  #weighted<T>(choices: Weighted<T>): T {
    let left = fraction(this.#random) * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of choices) {
      left -= weight;
      if (left < 0) return make();
    }
    return choices.at(-1)![1]();
  }
}
