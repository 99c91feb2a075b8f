import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Clock, Deadline, systemClock } from '../base/clock.ts';
import { parseDuration } from '../base/duration.ts';
import { lockFile } from '../base/lock-file.ts';
import { packageVersion } from '../base/package-version.ts';
import { isRunning } from '../base/process-identity.ts';
import { type LocalPlace, localPlace, preparePrivateFolder } from './local-place.ts';
import { LocalServerError } from './local-server-error.ts';
import { runningServer, type ServerRecord } from './server-record.ts';
import { isNewer } from './version-order.ts';

/** What the server's process is told, as its only argument. */
export interface DaemonOrder {
  readonly place: LocalPlace;
  readonly version: string;
  /** How long it stays with nobody connected and nothing held. */
  readonly idleMs: number;
}

/** What it answers, once, on file descriptor 3. */
export type DaemonAnswer = { readonly listening: true } | { readonly failed: string };

export interface EnsureOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly version?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

const TIMEOUT_MS = 15_000;
const IDLE_MS = 600_000;
const POLL_MS = 20;
/** A server that does not stop when it is asked to: what it has promised is on disk. */
const STOP_MS_MAX = 10_000;
/** What the server may know of whoever happened to start it. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR'];

/**
 * Makes sure that this user's local server runs, and says which it is.
 *
 *   1. One that runs, and is not older than this package, is the one. It costs the reading of a file to know.
 *   2. Otherwise, with the lock on starting: look again, stop an older one, start one, wait until it listens.
 *   3. Who does not get that lock looks again until somebody else's server is there.
 *
 * A newer server is never replaced by an older one. Sessions and what they hold are on disk: they outlive the change.
 *
 * @throws LocalServerError
 */
export async function ensureLocalServer(options: EnsureOptions = {}): Promise<ServerRecord> {
  const { env = process.env, clock = systemClock, timeoutMs = TIMEOUT_MS, signal } = options;
  const place = localPlace(env);
  const version = options.version ?? packageVersion();
  const suits = (record: ServerRecord | undefined) => record && !isNewer(version, record.version);
  const deadline = new Deadline(clock, timeoutMs);
  for (let attempt = 0; ; attempt++) {
    const present = runningServer(place);
    if (present && suits(present)) return present;
    signal?.throwIfAborted();
    if (deadline.remainingMs() === 0) {
      throw new LocalServerError(`not there within ${timeoutMs} ms; see ${place.logFile}`);
    }
    if (attempt === 0) {
      preparePrivateFolder(place.folder);
      preparePrivateFolder(dirname(place.socketPath));
    }
    const lock = await lockFile(place.startingFile);
    if (!lock.locked) {
      await sleep(clock, POLL_MS);
      continue;
    }
    try {
      const older = runningServer(place);
      if (older && suits(older)) return older;
      if (older) await stopLocalServer(older, clock);
      await start({ place, version, idleMs: idleMsFrom(env) }, clock, deadline);
    } finally {
      await lock.release();
    }
  }
}

/** Asks a local server to stop, and waits until it is gone. Sessions stay, on disk. */
export async function stopLocalServer(record: ServerRecord, clock: Clock = systemClock): Promise<void> {
  const deadline = new Deadline(clock, STOP_MS_MAX);
  send(record, 'SIGTERM');
  while (isRunning(record)) {
    if (deadline.remainingMs() === 0) send(record, 'SIGKILL');
    await sleep(clock, POLL_MS);
  }
}

function send(record: ServerRecord, name: NodeJS.Signals): void {
  try {
    if (isRunning(record)) process.kill(record.pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** In a session of its own, with an environment of its own: it must not end, or know, what happened to start it. */
async function start(order: DaemonOrder, clock: Clock, deadline: Deadline): Promise<void> {
  const { place } = order;
  const logFd = openSync(place.logFile, 'a', 0o600);
  let child: ChildProcess;
  try {
    const entry = daemonEntry();
    child = spawn(process.execPath, [...entry.flags, entry.file, JSON.stringify(order)], {
      cwd: place.folder,
      detached: true,
      env: Object.fromEntries(
        INHERITED.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])),
      ),
      stdio: ['ignore', 'ignore', logFd, 'pipe'],
    });
  } finally {
    closeSync(logFd);
  }
  const answer = await answerOf(child, clock, deadline);
  child.unref();
  if ('failed' in answer) throw new LocalServerError(`${answer.failed}; see ${place.logFile}`);
}

function answerOf(child: ChildProcess, clock: Clock, deadline: Deadline): Promise<DaemonAnswer> {
  const pipe = child.stdio[3] as NodeJS.ReadableStream & { destroy(): void };
  return new Promise((resolve) => {
    let text = '';
    const settle = (answer: DaemonAnswer) => {
      cancel();
      pipe.destroy();
      resolve(answer);
    };
    const cancel = clock.at(deadline.atMs, () => settle({ failed: 'it did not answer in time' }));
    child.on('error', (error) => settle({ failed: `it could not be started: ${error.message}` }));
    pipe.on('error', () => {});
    pipe.on('data', (chunk) => {
      text += String(chunk);
      if (text.endsWith('\n')) settle(JSON.parse(text) as DaemonAnswer);
    });
    pipe.on('end', () => settle({ failed: 'it ended before it listened' }));
  });
}

/** The file that the server's process runs: as built, or the source under the loader that runs this one. */
function daemonEntry(): { readonly file: string; readonly flags: readonly string[] } {
  const isSource = import.meta.url.endsWith('.ts');
  const file = fileURLToPath(new URL(`../daemon/main.${isSource ? 'ts' : 'js'}`, import.meta.url));
  return { file, flags: isSource ? process.execArgv : [] };
}

function idleMsFrom(env: Readonly<Record<string, string | undefined>>): number {
  const text = env['HOLDFAST_LOCAL_IDLE'];
  if (!text) return IDLE_MS;
  const idleMs = parseDuration(text);
  if (idleMs === undefined) {
    throw new TypeError(`HOLDFAST_LOCAL_IDLE: ${JSON.stringify(text)} given; such as 10m is needed`);
  }
  return idleMs;
}

function sleep(clock: Clock, durationMs: number): Promise<void> {
  return new Promise((resolve) => clock.at(clock.nowMs() + durationMs, resolve));
}
