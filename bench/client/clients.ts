// The clients under one face. Each is used as its own documentation says.
import { createRequire } from 'node:module';
import { connect, ops } from 'holdfast/zookeeper';
import { countingSocket } from './counting-socket.ts';

export interface BenchClient {
  get(path: string): Promise<unknown>;
  set(path: string): Promise<unknown>;
  /** That many reads that are wanted together, in the best way the client has for it. */
  getMany(path: string, count: number): Promise<unknown>;
  /** An exists-watch on an absent node. */
  watch(path: string): Promise<unknown>;
}

const SESSION_TIMEOUT_MS = 30_000;
const DATA = Buffer.alloc(100, 'x');
// Typed by what is used of them: neither ships types that fit.
const requirePeer = createRequire(new URL('../peers/package.json', import.meta.url));
type Callback = (error: Error | null, ...results: unknown[]) => void;

export const clients = {
  async holdfast(servers: string): Promise<BenchClient> {
    const zk = await connect(servers, { sessionTimeoutMs: SESSION_TIMEOUT_MS });
    const onEvent = () => {};
    return {
      get: (path) => zk.get(path),
      set: (path) => zk.set(path, DATA),
      getMany: (path, count) => zk.multiRead(Array.from({ length: count }, () => ops.get(path))),
      watch: (path) => zk.exists(path, { watch: onEvent }),
    };
  },

  async 'node-zookeeper-client'(servers: string): Promise<BenchClient> {
    const { createClient } = requirePeer('node-zookeeper-client');
    const zk = createClient(servers, { sessionTimeout: SESSION_TIMEOUT_MS });
    await new Promise<void>((resolve) => {
      zk.once('connected', resolve);
      zk.connect();
    });
    const promised = (call: (callback: Callback) => void) =>
      new Promise<unknown>((resolve, reject) => {
        call((error, result) => (error ? reject(error) : resolve(result)));
      });
    const onEvent = () => {};
    const get = (path: string) => promised((callback) => zk.getData(path, callback));
    return {
      get,
      getMany: (path, count) => oneByOne(get, path, count),
      set: (path) => promised((callback) => zk.setData(path, DATA, -1, callback)),
      watch: (path) => promised((callback) => zk.exists(path, onEvent, callback)),
    };
  },

  async native(servers: string): Promise<BenchClient> {
    const ZooKeeper = requirePeer('zookeeper') as NativeClass;
    const zk = new ZooKeeper({
      connect: servers,
      timeout: SESSION_TIMEOUT_MS,
      debug_level: ZooKeeper.constants.ZOO_LOG_LEVEL_ERROR,
      host_order_deterministic: false,
    });
    await new Promise<void>((resolve) => {
      zk.once('connect', () => resolve());
      zk.init({});
    });
    const onEvent = () => {};
    const get = (path: string) => zk.get(path, false);
    return {
      get,
      getMany: (path, count) => oneByOne(get, path, count),
      set: (path) => zk.set(path, DATA, -1),
      // Rejects for an absent node, after the watch is set.
      watch: (path) => zk.w_exists(path, onEvent).catch(() => undefined),
    };
  },
  /** No client at all: what the server gives to a socket that only counts bytes. */
  async 'a socket'(servers: string): Promise<BenchClient> {
    const socket = await countingSocket(servers, SESSION_TIMEOUT_MS);
    const get = (path: string) => socket.get(path, DATA.length);
    return {
      get,
      set: (path) => socket.set(path, DATA),
      getMany: (path, count) => oneByOne(get, path, count),
      watch: (path) => socket.watchAbsent(path),
    };
  },
} as const;

/** All in one tick: for clients that can ask for several things only one by one. */
function oneByOne(get: (path: string) => Promise<unknown>, path: string, count: number): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, () => get(path)));
}

interface NativeClass {
  new (config: object): NativeClient;
  readonly constants: { readonly ZOO_LOG_LEVEL_ERROR: number };
}

interface NativeClient {
  once(event: 'connect', listener: () => void): void;
  init(config: object): void;
  get(path: string, watch: boolean): Promise<unknown>;
  set(path: string, data: Buffer, version: number): Promise<unknown>;
  w_exists(path: string, listener: () => void): Promise<unknown>;
}
