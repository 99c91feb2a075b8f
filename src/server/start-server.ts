import { type Cancel, type Clock, systemClock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { type Random, systemRandom } from '../base/random.ts';
import { firstZxid, ServerCore } from './server-core.ts';
import { limitsFrom, type ServerLimits } from './server-limits.ts';
import { openStorage } from './storage/open-storage.ts';
import { type ServerTlsOptions, TcpListener } from './tcp-listener.ts';

/** How an embedded server is to be. Everything has a default that suits a laptop. */
export interface ServerOptions {
  /** The address to listen on; loopback if left out. */
  readonly host?: string;
  /** The port; a free one if left out. */
  readonly port?: number;
  /** A unix socket to listen on instead. */
  readonly socketPath?: string;
  readonly tls?: ServerTlsOptions;
  readonly limits?: Partial<ServerLimits>;
  /** A folder to keep everything in: what was answered survives a crash. In memory if left out. */
  readonly folder?: string;
  /** A log that has grown to this is followed by a snapshot; 64 MiB if left out. */
  readonly logBytesMax?: number;
  /** Whether nodes with a time to live may be made. */
  readonly ttlNodes?: boolean;
  /** `user:base64(sha1(user:password))` of a digest user who may do anything; nobody if left out. */
  readonly superDigest?: string;
  /**
   * The four-letter words that are answered, or `'*'` for all; srvr, ruok, mntr and isro if left out. The others name
   * clients, paths and the machine to anyone who can connect, and kazoo's `server_version()` needs envi.
   */
  readonly fourLetterWords?: readonly string[] | '*';
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** A server that is listening. */
export interface RunningServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly connectString: string;
  stop(): Promise<void>;
}

/**
 * Starts a ZooKeeper-compatible server in this process.
 *
 * ```ts
 * await using server = await startServer();
 * await using zk = await connect(server.connectString);
 * ```
 */
export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const {
    host = '127.0.0.1',
    port = 0,
    clock = systemClock,
    random = systemRandom,
    log = silentLog,
  } = options;
  const limits = limitsFrom(options.limits); // Before anything is touched.
  const storage =
    options.folder === undefined
      ? undefined
      : await openStorage(options.folder, {
          clock,
          log,
          ...(options.logBytesMax !== undefined && { logBytesMax: options.logBytesMax }),
          firstZxid: (used) => firstZxid(clock.wallMs(), used),
        });
  const core = new ServerCore({
    clock,
    random,
    log,
    ...(storage && { recovered: storage.recovered, journal: storage.store }),
    limits,
    ...(options.ttlNodes !== undefined && { ttlNodes: options.ttlNodes }),
    ...(options.superDigest !== undefined && { superDigest: options.superDigest }),
    ...(options.fourLetterWords !== undefined && { fourLetterWords: options.fourLetterWords }),
  });
  const ticker = new Ticker(core, clock);
  storage?.store.serve({
    durable: (zxid) => {
      core.durable(zxid);
      ticker.arm(); // Requests that waited for the disk may have to wait for something else now.
    },
    storeFailed: (error) => core.storeFailed(error),
    state: () => core.state(),
  });
  const listener = new TcpListener(core, { tls: options.tls, clock, onStep: () => ticker.arm() });
  try {
    await listener.listen(options.socketPath === undefined ? { host, port } : { path: options.socketPath });
  } catch (error) {
    await storage?.close();
    throw error;
  }
  ticker.arm();
  const stop = async () => {
    ticker.stop();
    await listener.close();
    await storage?.close();
  };
  const listening = listener.port ?? 0;
  if (listener.port !== undefined)
    core.listening = options.tls ? { securePort: listening } : { port: listening };
  return { host, port: listening, connectString: `${host}:${listening}`, stop, [Symbol.asyncDispose]: stop };
}

/** Calls the core when time has passed that matters to it. */
class Ticker {
  readonly #core: ServerCore;
  readonly #clock: Clock;
  #alarm: { readonly atMs: number; readonly cancel: Cancel } | undefined;
  #stopped = false;

  constructor(core: ServerCore, clock: Clock) {
    this.#core = core;
    this.#clock = clock;
  }

  /** Most steps only move the next deadline further away; the alarm is then left to go off early and look. */
  arm(): void {
    if (this.#stopped) return;
    const atMs = this.#core.wakeAtMs;
    if (this.#alarm && this.#alarm.atMs <= atMs) return;
    this.#alarm?.cancel();
    const cancel = this.#clock.at(atMs, () => {
      this.#alarm = undefined;
      this.#core.tick();
      this.arm();
    });
    this.#alarm = { atMs, cancel };
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.cancel();
  }
}
