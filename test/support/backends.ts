import { afterAll, describe, test } from 'vitest';
import { type RunningServer, startServer } from '../../src/server/start-server.ts';
import { type ConnectOptions, connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { sharedEnsemble, sharedStandalone } from './shared-servers.ts';
import { startEnsemble, type ZooKeeperEnsemble } from './zookeeper-ensemble.ts';
import type { ZooKeeperProcess } from './zookeeper-process.ts';

/** Of super:admin. */
const SUPER_DIGEST = 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=';

/** One test's part of a server: a node of its own as chroot, and clients that are closed at the end. */
export class Workspace implements AsyncDisposable {
  readonly servers: string;
  readonly root: string;
  readonly #admin: ZooKeeper;
  readonly #clients: ZooKeeper[] = [];
  readonly #moves: Moves | undefined;

  private constructor(servers: string, root: string, admin: ZooKeeper, moves: Moves | undefined) {
    this.servers = servers;
    this.root = root;
    this.#admin = admin;
    this.#moves = moves;
  }

  static async on(servers: string, moves?: Moves): Promise<Workspace> {
    const admin = await connect(servers);
    const { path } = await admin.create('/test-', '', { mode: 'persistent-sequential' });
    return new Workspace(servers, path, admin, moves);
  }

  /** A client whose root is this test's node. */
  async connect(options: ConnectOptions = {}): Promise<ZooKeeper> {
    const zk = await connect(`${this.servers}${this.root}`, options);
    this.#clients.push(zk);
    await this.#moves?.move(zk);
    return zk;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#clients.map((zk) => zk.close()));
    await this.#moves?.restore();
    await this.#admin.addAuth('digest', 'super:admin');
    await this.#admin.deleteTree(this.root);
    await this.#admin.close();
  }
}

/** Makes a test's first client change servers before the test begins, by killing the one it is on. */
class Moves {
  readonly #ensemble: ZooKeeperEnsemble;
  #killed: ZooKeeperProcess | undefined;

  constructor(ensemble: ZooKeeperEnsemble) {
    this.#ensemble = ensemble;
  }

  async move(zk: ZooKeeper): Promise<void> {
    if (this.#killed) return; // Two of three must stay.
    this.#killed = await serverOf(zk, this.#ensemble);
    const moved = new Promise<void>((resolve) => void zk.on('connected', () => resolve()));
    await this.#killed.kill();
    await moved;
    await zk.sync(); // The server it is on now may be behind the one that made the workspace.
  }

  async restore(): Promise<void> {
    await this.#killed?.start();
    this.#killed = undefined;
    await this.#ensemble.waitUntilServing();
  }
}

/** The server that has this client's connection, by asking each for its connections. */
export async function serverOf(zk: ZooKeeper, ensemble: ZooKeeperEnsemble): Promise<ZooKeeperProcess> {
  const id = `sid=0x${zk.session.id.toString(16)}`;
  for (const server of ensemble.servers) {
    if (server.running && (await server.fourLetterWord('cons')).includes(id)) return server;
  }
  throw new Error(`no server has session ${id}`);
}

/** Runs one test body, unchanged, on every backend, each time in a workspace of its own. */
export function onEveryBackend(name: string, body: (workspace: Workspace) => Promise<void>): void {
  describe.each([
    ['embedded server', onEmbeddedServer],
    ['ZooKeeper standalone', () => Workspace.on(sharedStandalone().connectString)],
    ['ZooKeeper ensemble', () => Workspace.on(sharedEnsemble().connectString)],
    ['ZooKeeper ensemble, the client moved off a killed server', onMovingClient],
  ] as const)('%s', (_backend, workspaceOn) => {
    test(name, async () => {
      await using workspace = await workspaceOn();
      await body(workspace);
    });
  });
}

/** The ensemble whose servers are killed: of this test file alone, started when the first test needs it. */
let breakable: Promise<ZooKeeperEnsemble> | undefined;
afterAll(async () => (await breakable)?.[Symbol.asyncDispose]());

/** The embedded server of this test file. */
let embedded: Promise<RunningServer> | undefined;
afterAll(async () => (await embedded)?.stop());

async function onEmbeddedServer(): Promise<Workspace> {
  embedded ??= startServer({
    superDigest: SUPER_DIGEST,
    limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 },
  });
  return Workspace.on((await embedded).connectString);
}

async function onMovingClient(): Promise<Workspace> {
  breakable ??= startEnsemble({ superDigest: SUPER_DIGEST });
  const ensemble = await breakable;
  return Workspace.on(ensemble.connectString, new Moves(ensemble));
}
