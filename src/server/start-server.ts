import { type Clock, systemClock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { type Random, systemRandom } from '../base/random.ts';
import { socketAddress } from '../base/socket-address.ts';
import { firstZxid } from './first-zxid.ts';
import { checkFourLetterWords } from './four-letter-words.ts';
import { hex } from './reported.ts';
import { ServerCore } from './server-core.ts';
import { limitsFrom, type ServerLimits } from './server-limits.ts';
import { openStorage, type Storage } from './storage/open-storage.ts';
import { type AdminOptions, TcpAdmin } from './tcp-admin.ts';
import { type ServerTlsOptions, TcpListener } from './tcp-listener.ts';
import { Ticker } from './ticker.ts';

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
  /**
   * Answers operators over HTTP: `/commands` as ZooKeeper's AdminServer, `/metrics` for Prometheus, `/healthz`. Off if
   * left out. `fourLetterWords` says which commands are answered here too.
   */
  readonly admin?: AdminOptions;
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
}

const serverOptionNames: OptionNames<ServerOptions> = {
  host: true,
  port: true,
  socketPath: true,
  tls: true,
  limits: true,
  folder: true,
  logBytesMax: true,
  ttlNodes: true,
  superDigest: true,
  fourLetterWords: true,
  admin: true,
  log: true,
  clock: true,
  random: true,
};
const adminOptionNames: OptionNames<AdminOptions> = { host: true, port: true };

/** A server that is listening. */
export interface RunningServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly connectString: string;
  /** Where operators may ask over HTTP, e.g. `http://127.0.0.1:8080`; undefined if nowhere. */
  readonly adminUrl: string | undefined;
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
  return (await assembleServer(options)).running;
}

/** A running server with its parts, for those who are to reach inside. */
export interface AssembledServer {
  readonly running: RunningServer;
  readonly core: ServerCore;
  readonly listener: TcpListener;
  readonly ticker: Ticker;
  /** Saves everything into the folder as if it were a new one: what was in it is gone. */
  saveAnew(): Promise<void>;
}

/** Puts the parts together and starts them. If one fails, those before it are closed again. */
export async function assembleServer(options: ServerOptions): Promise<AssembledServer> {
  checkOptionNames('startServer', options, serverOptionNames);
  if (options.admin !== undefined) checkOptionNames('admin', options.admin, adminOptionNames);
  if (options.fourLetterWords !== undefined) checkFourLetterWords(options.fourLetterWords);
  const { host = '127.0.0.1', port = 0, clock = systemClock, log = silentLog } = options;
  const startedAtMs = clock.nowMs();
  const closers: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closers.reverse()) await close();
  };
  try {
    const { core, ticker, storage } = await openCore(options, { clock, log }, closers);
    const recoveryMs = clock.nowMs() - startedAtMs;
    const listener = new TcpListener(core, { tls: options.tls, clock, log, onStep: () => ticker.arm() });
    const { socketPath } = options;
    await listener.listen(socketPath === undefined ? { host, port } : { path: socketPath });
    closers.push(() => listener.close());
    ticker.arm();
    closers.push(async () => ticker.stop());
    const listening = listener.port ?? 0;
    if (listener.port !== undefined)
      core.listening = options.tls ? { securePort: listening } : { port: listening };
    const { host: adminHost = '127.0.0.1', port: adminPort = 0 } = options.admin ?? {};
    let adminUrl: string | undefined;
    if (options.admin) {
      const admin = new TcpAdmin(core, { host: adminHost, clock, log });
      adminUrl = await admin.listen(adminPort);
      closers.push(() => admin.close());
    }
    log('info', 'server started', {
      address: socketPath ?? addressText(host, listening),
      ...(core.disk && { folder: core.disk.path, recoveryMs: Math.round(recoveryMs) }),
      nodes: core.tree.nodeCount,
      sessions: core.sessions.count,
      zxid: hex(core.zxid),
      ...(adminUrl !== undefined && { adminUrl }),
    });
    let stopped: Promise<void> | undefined;
    const stop = () => {
      stopped ??= closeAll().then(() =>
        log('info', 'server stopped', { sessions: core.sessions.count, zxid: hex(core.zxid) }),
      );
      return stopped;
    };
    const connectString = socketPath === undefined ? addressText(host, listening) : socketAddress(socketPath);
    const running = { host, port: listening, connectString, adminUrl, stop, [Symbol.asyncDispose]: stop };
    const saveAnew = async () => storage?.saveAnew();
    return { running, core, listener, ticker, saveAnew };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** The core, with what its folder holds if it has one, and what calls it when time has passed. */
async function openCore(
  options: ServerOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  closers: (() => Promise<void>)[],
): Promise<{ readonly core: ServerCore; readonly ticker: Ticker; readonly storage: Storage | undefined }> {
  const { folder, random = systemRandom } = options;
  const limits = limitsFrom(options.limits); // Before anything is touched.
  const storage =
    folder === undefined
      ? undefined
      : await openStorage(folder, {
          clock,
          random,
          log,
          ...(options.logBytesMax !== undefined && { logBytesMax: options.logBytesMax }),
          firstZxid: (used) => firstZxid(clock.wallMs(), used),
        });
  if (storage) closers.push(() => storage.close());
  const core = new ServerCore({
    ...options,
    clock,
    random,
    log,
    ...(storage && { recovered: storage.recovered, journal: storage.store, disk: storage.report }),
    limits,
  });
  const ticker = new Ticker(core, clock);
  core.onStoreStep = () => ticker.arm();
  storage?.store.serve(core);
  return { core, ticker, storage };
}

function addressText(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
