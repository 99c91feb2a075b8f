import { describe, test } from 'vitest';
import { type ConnectOptions, connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { sharedEnsemble, sharedStandalone } from './shared-servers.ts';

/** The servers that every conformance test must pass on; the same body, unchanged. */
const backends = {
  'ZooKeeper standalone': () => sharedStandalone().connectString,
  'ZooKeeper ensemble': () => sharedEnsemble().connectString,
} as const;

/** One test's part of a server: a node of its own as chroot, and clients that are closed at the end. */
export class Workspace implements AsyncDisposable {
  readonly servers: string;
  readonly root: string;
  readonly #admin: ZooKeeper;
  readonly #clients: ZooKeeper[] = [];

  private constructor(servers: string, root: string, admin: ZooKeeper) {
    this.servers = servers;
    this.root = root;
    this.#admin = admin;
  }

  static async on(servers: string): Promise<Workspace> {
    const admin = await connect(servers);
    const { path } = await admin.create('/test-', '', { mode: 'persistent-sequential' });
    return new Workspace(servers, path, admin);
  }

  /** A client whose root is this test's node. */
  async connect(options: ConnectOptions = {}): Promise<ZooKeeper> {
    const zk = await connect(`${this.servers}${this.root}`, options);
    this.#clients.push(zk);
    return zk;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#clients.map((zk) => zk.close()));
    await this.#admin.addAuth('digest', 'super:admin');
    await this.#admin.deleteTree(this.root);
    await this.#admin.close();
  }
}

/** Runs one test body on every backend, each time in a workspace of its own. */
export function onEveryBackend(name: string, body: (workspace: Workspace) => Promise<void>): void {
  describe.each(Object.entries(backends))('%s', (_backend, servers) => {
    test(name, async () => {
      await using workspace = await Workspace.on(servers());
      await body(workspace);
    });
  });
}
