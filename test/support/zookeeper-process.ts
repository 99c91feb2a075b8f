import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, rmSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from './free-port.ts';

const HOST = '127.0.0.1';
const MAIN_CLASS = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
/**
 * The manifest of Debian's zookeeper.jar names most of what the server needs. It forgets a binding for
 * slf4j, without which nothing is logged at all, the half of Netty that TLS needs, and a bit of Jetty.
 */
const CLASS_PATH = [
  'zookeeper',
  'slf4j-simple',
  'netty-codec',
  'netty-resolver',
  'netty-transport-native-unix-common',
  // For the AdminServer.
  'jetty9-util-ajax',
  'servlet-api',
].map((jar) => `/usr/share/java/${jar}.jar`);
const JVM_FLAGS_DEFAULT = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
const POLL_INTERVAL_MS = 20;
const ANSWER_TIMEOUT_MS = 5_000;
const POLL_ANSWER_TIMEOUT_MS = 1_000;
const STOP_TIMEOUT_MS = 10_000;
const LOG_LINES_IN_ERROR = 30;

/** The parts of a server's TLS port, as PEM files; keys are PKCS#8. */
export interface ZooKeeperTls {
  readonly keyFile: string;
  readonly certFile: string;
  readonly caFile: string;
  /** Whether a client must show a certificate signed by `caFile`. */
  readonly clientAuth: 'none' | 'want' | 'need';
}

/** How a test wants its server to be. Everything has a default that suits a quick test. */
export interface ZooKeeperOptions {
  readonly tickTimeMs?: number;
  /** Two ticks unless given, as in ZooKeeper itself. */
  readonly minSessionTimeoutMs?: number;
  readonly maxSessionTimeoutMs?: number;
  /** Connections per client address; 0 is unlimited. */
  readonly maxClientConnections?: number;
  /** TTL nodes are refused without it. */
  readonly extendedTypesEnabled?: boolean;
  /** `user:base64(sha1(user:password))` of the super user of scheme digest. */
  readonly superDigest?: string;
  /** Opens `securePort` beside the plain one, and serves both through Netty. */
  readonly tls?: ZooKeeperTls;
  /** User to password, for SASL DIGEST-MD5. Logging in is possible, not mandatory. */
  readonly saslUsers?: Readonly<Record<string, string>>;
  /** How often empty containers and outlived TTL nodes are looked for. */
  readonly containerCheckIntervalMs?: number;
  readonly readOnlyMode?: boolean;
  /** Opens `adminPort`, where commands are answered over HTTP. */
  readonly adminServer?: boolean;
  readonly reconfigEnabled?: boolean;
  /** Replaces the flags that make a JVM start fast and stay small; for benchmarks. */
  readonly jvmFlags?: readonly string[];
  /** The folder its own folder is made in; one in memory if left out, where there is one. */
  readonly parentFolder?: string;
  /** Further `-D` properties of the JVM; they win over those above. */
  readonly systemProperties?: Readonly<Record<string, string>>;
}

/** One member of an ensemble, as every member's configuration names it. */
export interface QuorumMember {
  readonly id: number;
  readonly clientPort: number;
  readonly quorumPort: number;
  readonly electionPort: number;
}

/** What turns a standalone server into a member of an ensemble. */
export interface QuorumMembership {
  readonly self: QuorumMember;
  readonly members: readonly QuorumMember[];
  readonly initLimitTicks: number;
  readonly syncLimitTicks: number;
}

/** What a server says of itself; `undefined` is a server that does not serve. */
export type ServerMode = 'standalone' | 'leader' | 'follower' | 'observer' | 'read-only';

/**
 * A real ZooKeeper server, from Debian's packages, in a process of its own.
 *
 * Ports and data stay the same over `stop`, `kill` and `start`; disposing removes both. The process cannot
 * outlive the one that started it, however that one ends.
 */
export class ZooKeeperProcess implements AsyncDisposable {
  readonly host = HOST;
  readonly port: number;
  readonly securePort: number | undefined;
  readonly adminPort: number | undefined;
  readonly dataFolder: string;
  readonly #arguments: readonly string[];
  #child: ChildProcess | undefined;
  #paused = false;

  private constructor(place: ServerPlace, jvmArguments: readonly string[]) {
    this.port = place.port;
    this.securePort = place.securePort;
    this.adminPort = place.adminPort;
    this.dataFolder = place.dataFolder;
    this.#arguments = jvmArguments;
  }

  /** Writes the configuration of a server without starting it. */
  static async create(options: ZooKeeperOptions = {}, quorum?: QuorumMembership): Promise<ZooKeeperProcess> {
    const [freePort, securePort, adminPort] = await freePorts(3);
    const dataFolder = await mkdtemp(
      join(options.parentFolder ?? memoryFolder() ?? tmpdir(), 'holdfast-zookeeper-'),
    );
    leftovers.folders.add(dataFolder);
    const place: ServerPlace = {
      dataFolder,
      port: quorum?.self.clientPort ?? freePort!,
      securePort: options.tls === undefined ? undefined : securePort!,
      adminPort: options.adminServer ? adminPort! : undefined,
    };
    await writeConfiguration(place, options, quorum);
    return new ZooKeeperProcess(place, jvmArguments(place, options));
  }

  get connectString(): string {
    return `${this.host}:${this.port}`;
  }

  /** Undefined while the server is down. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Everything the JVM wrote, over all starts. */
  get logFile(): string {
    return join(this.dataFolder, 'server.log');
  }

  /** Starts the process; it serves once `waitUntilServing` says so. */
  async start(): Promise<void> {
    if (this.#child !== undefined) throw new Error(`zookeeper on ${this.connectString} is running already`);
    const log = await open(this.logFile, 'a');
    try {
      // setpriv replaces itself by the JVM, so the pid is the JVM's. A test runner that is killed runs no
      // exit handler; the kernel's death signal is what then takes the server along.
      const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'java', ...this.#arguments], {
        cwd: this.dataFolder,
        stdio: ['ignore', log.fd, log.fd],
      });
      child.once('exit', () => this.#forget(child));
      await once(child, 'spawn');
      this.#child = child;
      leftovers.children.add(child);
    } finally {
      await log.close();
    }
  }

  /** Ends the process as an operator would. Does nothing if it is down. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    child.kill('SIGTERM');
    this.resume(); // A stopped process takes no SIGTERM.
    const overdue = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited(child);
    clearTimeout(overdue);
  }

  /** Ends the process as a crash would. Does nothing if it is down. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    child.kill('SIGKILL');
    await exited(child);
  }

  /** Freezes the process: connections stay open and nobody answers. */
  async pause(): Promise<void> {
    const child = this.#child;
    if (child === undefined) throw new Error(`zookeeper on ${this.connectString} is not running`);
    child.kill('SIGSTOP');
    this.#paused = true;
    await allThreadsStopped(child.pid!);
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#paused = false;
  }

  /** Stops the process if it runs, starts it again on the same data, and waits until it serves. */
  async restart(timeoutMs?: number): Promise<void> {
    await this.stop();
    await this.start();
    await this.waitUntilServing(timeoutMs);
  }

  /** @throws Error with the end of the server's log, if it exits instead or takes too long. */
  async waitUntilServing(timeoutMs = 30_000): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs;
    const child = this.#child;
    for (;;) {
      if (child === undefined || child !== this.#child) {
        throw await this.#failure(`exited (${howItExited(child)}) before it served`);
      }
      if (await this.#isServing()) return;
      if (performance.now() >= deadlineMs) throw await this.#failure(`does not serve after ${timeoutMs} ms`);
      await delay(POLL_INTERVAL_MS);
    }
  }

  /** What the server says it is; undefined if it is down, not serving, or silent. */
  async mode(): Promise<ServerMode | undefined> {
    if (!this.running || this.#paused) return undefined;
    const report = await fourLetterWord(this, 'srvr', POLL_ANSWER_TIMEOUT_MS).catch(() => '');
    return /^Mode: (.*)$/m.exec(report)?.[1] as ServerMode | undefined;
  }

  fourLetterWord(word: string): Promise<string> {
    return fourLetterWord(this, word);
  }

  async lastLogLines(count = LOG_LINES_IN_ERROR): Promise<string> {
    const log = await readFile(this.logFile, 'utf8').catch(() => '');
    return log.trimEnd().split('\n').slice(-count).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.dataFolder, { recursive: true, force: true });
    leftovers.folders.delete(this.dataFolder);
  }

  async #isServing(): Promise<boolean> {
    const mode = await this.mode();
    if (mode === undefined || mode === 'read-only') return false;
    // The server opens its other ports some time after it began to serve on the plain one.
    for (const port of [this.securePort, this.adminPort]) {
      if (port !== undefined && !(await isListening(this.host, port))) return false;
    }
    return true;
  }

  #forget(child: ChildProcess): void {
    leftovers.children.delete(child);
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#paused = false;
  }

  async #failure(problem: string): Promise<Error> {
    return new Error(
      `zookeeper on ${this.connectString} ${problem}; its log ends:\n${await this.lastLogLines()}`,
    );
  }
}

/** Starts a standalone server and waits until it serves. */
export async function startZooKeeper(options: ZooKeeperOptions = {}): Promise<ZooKeeperProcess> {
  const server = await ZooKeeperProcess.create(options);
  try {
    await server.start();
    await server.waitUntilServing();
    return server;
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

/** Sends one of ZooKeeper's four-letter words, such as `srvr`, and reads the answer to its end. */
export function fourLetterWord(
  server: { readonly host: string; readonly port: number },
  word: string,
  timeoutMs = ANSWER_TIMEOUT_MS,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.host, port: server.port });
    const chunks: Buffer[] = [];
    const overdue = setTimeout(() => {
      socket.destroy(
        new Error(`${server.host}:${server.port} does not answer ${word} within ${timeoutMs} ms`),
      );
    }, timeoutMs);
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(overdue);
      resolve(Buffer.concat(chunks).toString('utf8'));
    });
  });
}

function isListening(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

interface ServerPlace {
  readonly dataFolder: string;
  readonly port: number;
  readonly securePort: number | undefined;
  readonly adminPort: number | undefined;
}

/** Bytes in memory instead of on disk: a server's start and its writes are then not held up by other tests. */
export function memoryFolder(): string | undefined {
  try {
    accessSync('/dev/shm', constants.W_OK);
    return '/dev/shm';
  } catch {
    return undefined;
  }
}

const configFile = (place: ServerPlace) => join(place.dataFolder, 'zoo.cfg');
const jaasFile = (place: ServerPlace) => join(place.dataFolder, 'jaas.conf');
const keyStoreFile = (place: ServerPlace) => join(place.dataFolder, 'key-store.pem');

async function writeConfiguration(
  place: ServerPlace,
  options: ZooKeeperOptions,
  quorum: QuorumMembership | undefined,
): Promise<void> {
  const dataDir = join(place.dataFolder, 'data');
  await mkdir(dataDir);
  const tickTimeMs = options.tickTimeMs ?? 500;
  const settings: Record<string, string | number | boolean> = {
    dataDir,
    tickTime: tickTimeMs,
    minSessionTimeout: options.minSessionTimeoutMs ?? 2 * tickTimeMs,
    maxSessionTimeout: options.maxSessionTimeoutMs ?? 60_000,
    maxClientCnxns: options.maxClientConnections ?? 0,
    reconfigEnabled: options.reconfigEnabled ?? false,
    // A read-only server can grant a new session only if it is a local one.
    localSessionsEnabled: options.readOnlyMode ?? false,
    localSessionsUpgradingEnabled: options.readOnlyMode ?? false,
    'admin.enableServer': place.adminPort !== undefined,
    ...(place.adminPort !== undefined && {
      'admin.serverAddress': HOST,
      'admin.serverPort': place.adminPort,
    }),
    '4lw.commands.whitelist': '*',
  };
  if (quorum === undefined) {
    Object.assign(settings, { clientPort: place.port, clientPortAddress: HOST });
  } else {
    Object.assign(settings, quorumSettings(quorum));
    await writeFile(join(dataDir, 'myid'), `${quorum.self.id}\n`);
  }
  if (options.tls !== undefined) {
    Object.assign(settings, tlsSettings(place, options.tls));
    // ZooKeeper wants the key and the certificates of a PEM key store in one file.
    const parts = [options.tls.keyFile, options.tls.certFile].map((file) => readFile(file, 'utf8'));
    await writeFile(keyStoreFile(place), (await Promise.all(parts)).join('\n'), { mode: 0o600 });
  }
  if (options.saslUsers !== undefined) {
    settings['authProvider.sasl'] = 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider';
    await writeFile(jaasFile(place), jaasText(options.saslUsers), { mode: 0o600 });
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(configFile(place), lines.join(''));
}

function quorumSettings(quorum: QuorumMembership): Record<string, string | number> {
  const settings: Record<string, string | number> = {
    initLimit: quorum.initLimitTicks,
    syncLimit: quorum.syncLimitTicks,
  };
  for (const { id, quorumPort, electionPort, clientPort } of quorum.members) {
    settings[`server.${id}`] = `${HOST}:${quorumPort}:${electionPort}:participant;${HOST}:${clientPort}`;
  }
  return settings;
}

function tlsSettings(place: ServerPlace, tls: ZooKeeperTls): Record<string, string | number | boolean> {
  return {
    secureClientPort: place.securePort!,
    secureClientPortAddress: HOST,
    serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
    'ssl.keyStore.location': keyStoreFile(place),
    'ssl.keyStore.type': 'PEM',
    'ssl.trustStore.location': tls.caFile,
    'ssl.trustStore.type': 'PEM',
    'ssl.clientAuth': tls.clientAuth,
    'ssl.hostnameVerification': false,
  };
}

function jaasText(users: Readonly<Record<string, string>>): string {
  const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
  const entries = Object.entries(users).map(([user, password]) => {
    if (!/^[\w.-]+$/.test(user)) throw new TypeError(`sasl user ${JSON.stringify(user)} is not a word`);
    return `  user_${user}=${quoted(password)}`;
  });
  return `Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n${entries.join('\n')};\n};\n`;
}

function jvmArguments(place: ServerPlace, options: ZooKeeperOptions): string[] {
  const properties: Record<string, string | number | boolean> = {
    'zookeeper.forceSync': 'no',
    'zookeeper.extendedTypesEnabled': options.extendedTypesEnabled ?? true,
    'zookeeper.jmx.log4j.disable': true,
    'znode.container.checkIntervalMs': options.containerCheckIntervalMs ?? 60_000,
    'readonlymode.enabled': options.readOnlyMode ?? false,
    // To standard output, which is the log file: slf4j-simple would empty a file of its own at every start.
    'org.slf4j.simpleLogger.logFile': 'System.out',
    'org.slf4j.simpleLogger.showDateTime': true,
    'org.slf4j.simpleLogger.dateTimeFormat': 'HH:mm:ss.SSS',
  };
  if (options.superDigest !== undefined) {
    properties['zookeeper.DigestAuthenticationProvider.superDigest'] = options.superDigest;
  }
  if (options.saslUsers !== undefined) properties['java.security.auth.login.config'] = jaasFile(place);
  Object.assign(properties, options.systemProperties);
  return [
    ...(options.jvmFlags ?? JVM_FLAGS_DEFAULT),
    ...Object.entries(properties).map(([name, value]) => `-D${name}=${value}`),
    '-cp',
    CLASS_PATH.join(':'),
    MAIN_CLASS,
    configFile(place),
  ];
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** A signal takes its time: for some milliseconds after it, threads on other cores still answer clients. */
async function allThreadsStopped(pid: number): Promise<void> {
  const deadlineMs = performance.now() + STOP_TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    const threads = await readdir(`/proc/${pid}/task`);
    const reports = threads.map((thread) =>
      readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => undefined),
    );
    // The state is the first letter behind the name, which is in brackets and may hold anything.
    const isStopped = (report: string | undefined) => report === undefined || /\) T [^)]*$/.test(report);
    if ((await Promise.all(reports)).every(isStopped)) return;
  }
  throw new Error(`process ${pid} does not stop within ${STOP_TIMEOUT_MS} ms of SIGSTOP`);
}

function howItExited(child: ChildProcess | undefined): string {
  if (child === undefined) return 'it was not running';
  return child.signalCode === null ? `code ${child.exitCode}` : `signal ${child.signalCode}`;
}

/** What a test run that ends without disposing would leave behind. */
const leftovers = { children: new Set<ChildProcess>(), folders: new Set<string>() };

process.once('exit', () => {
  for (const child of leftovers.children) child.kill('SIGKILL');
  for (const folder of leftovers.folders) rmSync(folder, { recursive: true, force: true });
});
