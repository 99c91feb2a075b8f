import { connect, type Holdfast, type HoldfastOptions } from '../../src/holdfast.ts';
import { type RunningServer, startServer } from '../../src/server/start-server.ts';
import type { ZooKeeper } from '../../src/zookeeper.ts';
import { Workspace } from '../support/backends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';
import { fourLetterWord } from '../support/zookeeper-process.ts';
import type { LockPeer, PeerClient } from './lock-peer.ts';

/** Of the credentials that a workspace is cleared with. */
const SUPER_DIGEST = 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=';

/** One test's part of a server, for clients of several languages. All of them see the same paths. */
export class Scene implements AsyncDisposable {
  /** With the chroot. */
  readonly servers: string;
  /** For looking at nodes. */
  readonly zk: ZooKeeper;
  readonly #workspace: Workspace;
  readonly #server: RunningServer | undefined;
  readonly #holdfasts: Holdfast[] = [];
  readonly #peers: PeerClient[] = [];

  private constructor(workspace: Workspace, zk: ZooKeeper, server: RunningServer | undefined) {
    this.servers = `${workspace.servers}${workspace.root}`;
    this.zk = zk;
    this.#workspace = workspace;
    this.#server = server;
  }

  static async onZooKeeper(): Promise<Scene> {
    const workspace = await Workspace.on(sharedStandalone().connectString);
    return new Scene(workspace, await workspace.connect(), undefined);
  }

  static async onEmbeddedServer(): Promise<Scene> {
    const server = await startServer({
      superDigest: SUPER_DIGEST,
      limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 },
    });
    const workspace = await Workspace.on(server.connectString);
    return new Scene(workspace, await workspace.connect(), server);
  }

  async holdfast(options: HoldfastOptions = {}): Promise<Holdfast> {
    const holdfast = await connect({ servers: this.servers, ...options });
    this.#holdfasts.push(holdfast);
    return holdfast;
  }

  async peer(of: LockPeer, options: { readonly namespace?: string } = {}): Promise<PeerClient> {
    const client = await of.client(this.servers, options);
    this.#peers.push(client);
    return client;
  }

  /** A node to count in. */
  async counter(): Promise<string> {
    await this.zk.create('/counter', '0');
    return '/counter';
  }

  /** Waits until so many are in a folder: the holder, and those who wait. */
  async untilInQueue(folder: string, count: number): Promise<void> {
    await until(`${count} in ${folder}`, async () => (await this.zk.exists(folder))?.numChildren === count);
  }

  /** Waits until a session watches a node; only a ZooKeeper can tell. */
  async untilWatched(path: string, by: bigint): Promise<void> {
    const session = `0x${BigInt.asUintN(64, by).toString(16)}`;
    await until(`a watch on ${path}`, async () => {
      const watches = await fourLetterWord(sharedStandalone(), 'wchp');
      const [, sessions = ''] = watches.split(`${this.#workspace.root}${path}\n`);
      return (/^(?:\t.*\n)*/.exec(sessions)?.[0] ?? '').includes(session);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // First, so that whoever still waits gets its turn and ends.
    await Promise.all(this.#holdfasts.map((holdfast) => holdfast.close()));
    await Promise.all(this.#peers.map((peer) => peer.ask('close').catch(() => {})));
    await this.#workspace[Symbol.asyncDispose]();
    await this.#server?.stop();
  }
}
