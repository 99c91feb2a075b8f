// `node-zookeeper-client` has no lock: this is the textbook's, written as a careful user would.
//   1. Create an ephemeral sequential node.
//   2. List. The lowest holds.
//   3. Else watch the one ahead, and when it is gone go to 2.
import { createRequire } from 'node:module';
import { FIVE } from '../orders.ts';
import { type LockDriver, oneByOne, serveOrders, type TakeLock } from './serve-orders.ts';

const requirePeer = createRequire(new URL('../../peers/package.json', import.meta.url));
const { createClient, CreateMode } = requirePeer('node-zookeeper-client') as Library;
const [, , servers] = process.argv as string[] as [string, string, string];

const driver: LockDriver = {
  async open() {
    const zk = createClient(servers, { sessionTimeout: 30_000 });
    await new Promise<void>((resolve) => {
      zk.once('connected', resolve);
      zk.connect();
    });
    return {
      lock: (kind, name) =>
        kind === 'five-locks'
          ? oneByOne(Array.from({ length: FIVE }, (_, index) => mutex(zk, `/textbook/${name}-${index}`)))
          : mutex(zk, `/textbook/${name}`),
      close: () =>
        new Promise<void>((resolve) => {
          zk.once('disconnected', resolve);
          zk.close();
        }),
    };
  },
};
await serveOrders(driver);

function mutex(zk: Client, folder: string): TakeLock {
  let made: Promise<unknown> | undefined;
  return async () => {
    made ??= promised((callback) => zk.mkdirp(folder, callback));
    await made;
    const path = await promised<string>((callback) =>
      zk.create(`${folder}/lock-`, null, CreateMode.EPHEMERAL_SEQUENTIAL, callback),
    );
    const name = path.slice(folder.length + 1);
    for (;;) {
      const names = await promised<string[]>((callback) => zk.getChildren(folder, callback));
      const at = names.sort().indexOf(name); // All begin alike, so their numbers decide.
      if (at === 0) break;
      await gone(zk, `${folder}/${names[at - 1]}`);
    }
    return () => promised((callback) => zk.remove(path, callback));
  };
}

function gone(zk: Client, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    zk.exists(
      path,
      () => resolve(),
      (error, stat) => {
        if (error) reject(error);
        else if (!stat) resolve();
      },
    );
  });
}

function promised<T>(call: (callback: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => (error ? reject(error) : resolve(result as T)));
  });
}

// Typed by what is used of it: it ships no types.
type Callback<T> = (error: Error | null, result?: T) => void;

interface Library {
  createClient(servers: string, options: { readonly sessionTimeout: number }): Client;
  readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number };
}

interface Client {
  once(event: 'connected' | 'disconnected', listener: () => void): void;
  connect(): void;
  close(): void;
  mkdirp(path: string, callback: Callback<unknown>): void;
  create(path: string, data: null, mode: number, callback: Callback<string>): void;
  getChildren(path: string, callback: Callback<string[]>): void;
  exists(path: string, watcher: () => void, callback: Callback<object>): void;
  remove(path: string, callback: Callback<unknown>): void;
}
