import { type Cancel, type Clock, systemClock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { type Random, systemRandom } from '../base/random.ts';
import { ServerCore, type ServerLimits } from './server-core.ts';
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
  /** Whether nodes with a time to live may be made. */
  readonly ttlNodes?: boolean;
  /** `user:base64(sha1(user:password))` of a digest user who may do anything; nobody if left out. */
  readonly superDigest?: string;
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
  const core = new ServerCore({
    clock,
    random,
    log,
    ...(options.limits && { limits: options.limits }),
    ...(options.ttlNodes !== undefined && { ttlNodes: options.ttlNodes }),
    ...(options.superDigest !== undefined && { superDigest: options.superDigest }),
  });
  const ticker = new Ticker(core, clock);
  const listener = new TcpListener(core, { tls: options.tls, onStep: () => ticker.arm() });
  await listener.listen(options.socketPath === undefined ? { host, port } : { path: options.socketPath });
  ticker.arm();
  const stop = async () => {
    ticker.stop();
    await listener.close();
  };
  const listening = listener.port ?? 0;
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
