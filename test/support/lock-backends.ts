import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { describe, test } from 'vitest';
import { connect, type Holdfast, type HoldfastOptions } from '../../src/holdfast.ts';
import { Connect, Connected } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations } from '../../src/protocol/operations.ts';
import { RequestHeader } from '../../src/protocol/records.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { startServer } from '../../src/server.ts';
import { type Endpoint, FaultProxy } from '../../src/testing.ts';
import { connect as connectZooKeeper, type ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from './loose-ends.ts';
import { frameBytes } from './raw-server.ts';
import { sharedEnsemble, sharedStandalone } from './shared-servers.ts';
import { until } from './until.ts';
import { fourLetterWord } from './zookeeper-process.ts';

/** Of super:admin. */
export const SUPER_DIGEST = 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=';

/** Session timeouts of tests that wait for one to run out. */
export const SHORT_SESSION_MS = 2_000;

/** The servers that a workspace is on. */
export interface LockServers {
  readonly connectString: string;
  readonly endpoints: readonly Endpoint[];
}

/** Locks behind a proxy, and the means to end their session from outside. */
export interface FaultyHoldfast {
  readonly holdfast: Holdfast;
  readonly proxy: FaultProxy;
  /** Ends the session at the server, which tells the client. */
  expire(): Promise<void>;
  /** Cuts the client off for good, until `heal`: the server ends the session when its time has run out. */
  isolate(): void;
}

/** One test's part of a server: a chroot of its own, and clients that are closed at the end. */
export class LockWorkspace implements AsyncDisposable {
  readonly servers: LockServers;
  readonly root: string;
  /** Sees this workspace as its clients do, and has no locks. */
  readonly admin: ZooKeeper;
  readonly #clients: AsyncDisposable[] = [];
  readonly #proxies: FaultProxy[] = [];

  private constructor(servers: LockServers, root: string, admin: ZooKeeper) {
    this.servers = servers;
    this.root = root;
    this.admin = admin;
  }

  static async on(servers: LockServers): Promise<LockWorkspace> {
    await using maker = await connectZooKeeper(servers.connectString);
    const { path } = await maker.create('/locks-test-', '', { mode: 'persistent-sequential' });
    return new LockWorkspace(servers, path, await connectZooKeeper(`${servers.connectString}${path}`));
  }

  /** Locks of a connection of their own, as if it were another process's. */
  async holdfast(options: HoldfastOptions = {}): Promise<Holdfast> {
    const servers = `${this.servers.connectString}${this.root}`;
    const holdfast = await connect({ servers, neighbours: new Neighbours(), ...options });
    this.#clients.push(holdfast);
    return holdfast;
  }

  /** Several of them. */
  holdfasts(count: number, options: HoldfastOptions = {}): Promise<Holdfast[]> {
    return Promise.all(Array.from({ length: count }, () => this.holdfast(options)));
  }

  /**
   * Locks of a connection that goes through a proxy, to one server. A client waits longer and longer for a server that
   * hangs up soon; one with many servers, all of them this one, does not.
   */
  async faulty({
    dials = 1,
    ...options
  }: HoldfastOptions & { dials?: number } = {}): Promise<FaultyHoldfast> {
    const [target] = this.servers.endpoints;
    const proxy = await FaultProxy.start({ target: target! });
    this.#proxies.push(proxy);
    let grant: Buffer | undefined;
    proxy.onBytes((direction, chunk) => {
      if (direction === 'to-client' && isGrant(chunk)) grant = chunk;
    });
    const servers = Array<string>(dials).fill(proxy.connectString).join(',');
    const holdfast = await this.holdfast({ ...options, servers: `${servers}${this.root}` });
    const expire = () => endSession(target!, grant!);
    const isolate = () => {
      proxy.refuse();
      proxy.resetAll();
    };
    return { holdfast, proxy, expire, isolate };
  }

  /** The names in a lock's folder, in the order of their numbers; none if there is no folder. */
  async entries(name: string): Promise<string[]> {
    const names = await namesIn(this.admin, `/locks/${name}`);
    return names.sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
  }

  /** Waits until so many are in a lock's folder. */
  async untilEntries(name: string, count: number): Promise<string[]> {
    let names: string[] = [];
    await until(`${count} in the folder of ${name}`, async () => {
      names = await this.entries(name);
      return names.length === count;
    });
    return names;
  }

  /** Waits until the holder of a lock watches its own node, and so can be told. */
  async untilWatched(name: string): Promise<void> {
    await until(`a watch on the holder of ${name}`, async () =>
      (await this.watchedPaths()).some((path) => path.startsWith(`/locks/${name}/`)),
    );
  }

  /**
   * The paths in this workspace that some client watches, as the servers have it; but for the floor of tokens, which
   * each session watches for as long as it lasts.
   */
  async watchedPaths(): Promise<string[]> {
    const answers = await Promise.all(
      this.servers.endpoints.map((endpoint) => fourLetterWord(endpoint, 'wchp')),
    );
    const paths = answers.flatMap((answer) => answer.split('\n'));
    return paths
      .filter((path) => path.startsWith(`${this.root}/`) && !path.endsWith('/token-floor'))
      .map((path) => path.slice(this.root.length));
  }

  /** Every node that lives by a session, at any depth, and every baton. */
  async livingNodes(folder = ''): Promise<string[]> {
    const names = await namesIn(this.admin, folder || '/');
    const found = await Promise.all(
      names.map(async (name) => {
        const path = `${folder}/${name}`;
        const stat = await this.admin.exists(path);
        const living = stat && (stat.ephemeralOwner !== 0n || folder.endsWith('/batons'));
        return living ? [path] : this.livingNodes(path);
      }),
    );
    return found.flat();
  }

  /** Whatever was done is undone: no contender, no baton, no watch is left, while all clients are connected. */
  async expectNoResidue(): Promise<void> {
    let left: string[] = [];
    const settled = until(
      'nothing to be left behind',
      async () => {
        const [nodes, watches] = await Promise.all([this.livingNodes(), this.watchedPaths()]);
        left = [...nodes, ...watches.map((path) => `a watch on ${path}`)];
        return left.length === 0;
      },
      10_000,
    );
    await settled.catch(() => {
      throw new Error(`left behind: ${left.join(', ')}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const proxy of this.#proxies) proxy.heal();
    await Promise.all(this.#clients.map((client) => client[Symbol.asyncDispose]()));
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    await this.admin.close();
    await using remover = await connectZooKeeper(this.servers.connectString);
    await remover.addAuth('digest', 'super:admin');
    await remover.deleteTree(this.root);
  }
}

/** Where a test of locks runs. */
export type LockBackend = 'embedded server' | 'ZooKeeper standalone' | 'ZooKeeper ensemble';
type Body = (workspace: LockWorkspace) => Promise<void>;

/** Runs one test body, unchanged, on the embedded server and on real ZooKeeper, and sees that nothing is left. */
export function onEveryLockBackend(
  name: string,
  body: Body,
  backends: readonly LockBackend[] = ['embedded server', 'ZooKeeper standalone'],
  timeoutMs?: number,
): void {
  describe.each(backends)('%s', (backend) => {
    const run = async () => {
      await using _ends = looseEnds();
      await using servers = await serversOf(backend);
      await using workspace = await LockWorkspace.on(servers);
      await body(workspace);
      await workspace.expectNoResidue();
    };
    test(name, run, timeoutMs);
  });
}

/** All three, for what depends on servers being several. */
export const everyBackend: readonly LockBackend[] = [
  'embedded server',
  'ZooKeeper standalone',
  'ZooKeeper ensemble',
];

async function serversOf(backend: LockBackend): Promise<LockServers & AsyncDisposable> {
  if (backend === 'embedded server') {
    const server = await startServer({
      superDigest: SUPER_DIGEST,
      fourLetterWords: '*',
      limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 },
    });
    const { connectString } = server;
    return { connectString, endpoints: [server], [Symbol.asyncDispose]: () => server.stop() };
  }
  const shared = backend === 'ZooKeeper standalone' ? [sharedStandalone()] : sharedEnsemble().servers;
  return {
    connectString: shared.map(({ connectString }) => connectString).join(','),
    endpoints: shared,
    [Symbol.asyncDispose]: async () => {},
  };
}

async function namesIn(zk: ZooKeeper, path: string): Promise<string[]> {
  try {
    await zk.sync('/');
    return await zk.children(path);
  } catch (error) {
    if ((error as { code?: string }).code === 'ZK_NO_NODE') return [];
    throw error;
  }
}

/** A connect response: 36 or 37 bytes whose first four are 0, as no reply header's are. */
function isGrant(chunk: Buffer): boolean {
  return chunk.length >= 40 && [36, 37].includes(chunk.readInt32BE(0)) && chunk.readInt32BE(4) === 0;
}

/** Takes a session over by its password, and closes it. */
async function endSession({ host, port }: Endpoint, grant: Buffer): Promise<void> {
  const { sessionId, passwd } = Connected.read(new JuteReader(grant.subarray(4)));
  const request = {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: 20_000,
    sessionId,
    passwd,
    readOnly: false,
  };
  const socket = connectTcp({ host, port });
  socket.write(frameBytes((out) => Connect.write(out, request)));
  await once(socket, 'data');
  const type = operations.closeSession.opcode;
  socket.end(frameBytes((out) => RequestHeader.write(out, { xid: 1, type })));
  socket.resume();
  await once(socket, 'close');
}
