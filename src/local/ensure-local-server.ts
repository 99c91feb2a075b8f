import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Clock, Deadline, systemClock } from '../base/clock.ts';
import { parseDuration } from '../base/duration.ts';
import { type LockedFile, lockFile } from '../base/lock-file.ts';
import { packageVersion } from '../base/package-version.ts';
import { isRunning } from '../base/process-identity.ts';
import { type LocalPlace, localPlace, placeOfServer } from './local-place.ts';
import { LocalServerError } from './local-server-error.ts';
import { PLACE_VARIABLE, placeMark, type ServerProcess, serversBeside } from './other-servers.ts';
import { preparePlace } from './private-folder.ts';
import { isProcessHere, readRecord, type ServerRecord, servingServer } from './server-record.ts';
import { isNewer } from './version-order.ts';

/** What the server's process is told, as its only argument. */
export interface DaemonOrder {
  readonly place: LocalPlace;
  readonly version: string;
  /** How long it stays with nobody connected and nothing held. */
  readonly idleMs: number;
}

/** What it answers, once, on file descriptor 3. */
export type DaemonAnswer =
  | { readonly listening: true }
  | { readonly failed: string }
  /** Another one began before it. */
  | { readonly other: ServerProcess };

type Environment = Readonly<Record<string, string | undefined>>;

export interface EnsureOptions {
  readonly env?: Environment;
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
/** A process that is just ending does not show its environment any more, and runs for a moment. */
const PROOF_MS_MAX = 500;
/** How long a server in another folder is looked for before it is taken for one that is out of reach. */
const OTHER_MS_MAX = 3_000;
/** What the server may know of whoever happened to start it. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'LD_LIBRARY_PATH'];

/**
 * Makes sure that this user's local server runs, and says which it is.
 *
 *   1. Make the folder, or make sure that it is this user's alone: otherwise what is in it is not believed.
 *   2. One that runs, and is not older than this package, is the one. It costs the reading of a file to know.
 *   3. Otherwise, with the lock on starting: look again, stop an older one, start one, wait until it listens.
 *   4. A process without that lock looks again until the other's server is there.
 *   5. No server is started while the process of another one of this user runs, though its files be gone: both would
 *      grant the same locks. It puts its files back, or ends; where it cannot be seen from here, that is an error.
 *
 * A newer server is never replaced by an older one. Sessions and what they hold are on disk: they outlive the change.
 *
 * @throws LocalServerError; TypeError for a variable that says nothing possible, before anything is done.
 */
export async function ensureLocalServer(options: EnsureOptions = {}): Promise<ServerRecord> {
  const { env = process.env, clock = systemClock, timeoutMs = TIMEOUT_MS, signal } = options;
  const place = localPlace(env);
  const idleMs = idleMsFrom(env);
  const version = options.version ?? packageVersion();
  // One of another container cannot be asked to end: it is used as it is.
  const suits = (record: ServerRecord) => !isNewer(version, record.version) || !isProcessHere(record);
  const deadline = new Deadline(clock, timeoutMs);
  let other: ServerProcess | undefined;
  let otherSinceMs: number | undefined;
  for (;;) {
    preparePlace(place); // Each time: it may be removed meanwhile.
    const present = await servingServer(place);
    if (present && suits(present)) return present;
    signal?.throwIfAborted();
    if (deadline.remainingMs() === 0) {
      if (other) throw outOfReach(other, place);
      throw new LocalServerError(`not there within ${timeoutMs} ms; see ${place.logFile}`);
    }
    const lock = await lockStarting(place);
    if (!lock.locked) {
      await sleep(clock, POLL_MS);
      continue;
    }
    try {
      const older = await servingServer(place);
      if (older && suits(older)) return older;
      if (older) await stopLocalServer(place, older, clock);
      [other] = serversBeside(place);
      if (!other) other = await start({ place, version, idleMs }, clock, deadline);
    } finally {
      await lock.release();
    }
    if (!other) continue;
    const joined = recordOf(other);
    if (joined) return joined;
    otherSinceMs ??= clock.nowMs();
    // One in this folder is on its way out, or puts back its files, which were removed.
    const isElsewhere = other.folder !== place.folder;
    if (isElsewhere && clock.nowMs() - otherSinceMs >= OTHER_MS_MAX) throw outOfReach(other, place);
    await sleep(clock, POLL_MS);
  }
}

async function lockStarting({ startingFile }: LocalPlace): Promise<LockedFile | { readonly locked: false }> {
  try {
    return await lockFile(startingFile);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { locked: false }; // The folder was removed just now.
    throw new LocalServerError(`${startingFile} cannot be made: ${message}`, { cause: error });
  }
}

/**
 * The server that is used with this environment now, if any runs; and those beside it, which no files here lead to.
 *
 * @throws LocalServerError if the files here could be another user's.
 */
export async function findLocalServer(env: Environment): Promise<{
  readonly place: LocalPlace;
  readonly record: ServerRecord | undefined;
  readonly others: readonly ServerProcess[];
}> {
  const place = localPlace(env);
  const beside = serversBeside(place);
  const record = (await servingServer(place)) ?? beside.map(recordOf).find((each) => each !== undefined);
  return { place, record, others: beside.filter(({ pid }) => pid !== record?.pid) };
}

/** The record of a process that serves in another folder, where that can be seen. */
function recordOf(server: ServerProcess): ServerRecord | undefined {
  try {
    const record = readRecord(placeOfServer(server));
    return record?.pid === server.pid && isProcessHere(record) && isRunning(record) ? record : undefined;
  } catch {
    return undefined; // Not to be believed: it is as out of reach as one that is hidden.
  }
}

function outOfReach({ pid, folder }: ServerProcess, place: LocalPlace): LocalServerError {
  return new LocalServerError(
    `process ${pid} is one of this user's already, in ${folder}, and cannot be reached from here; end it, or name a folder for locks apart from its own by HOLDFAST_LOCAL_FOLDER (${place.folder} was to be used)`,
  );
}

/**
 * Asks the local server of a place to stop, and waits until it is gone. Sessions stay, on disk. What a file says of a
 * process number is no proof: the process itself must show that it is one, before each signal.
 *
 * @throws LocalServerError if the process that the record names is another one: it is left alone.
 */
export async function stopLocalServer(
  place: LocalPlace,
  record: ServerRecord,
  clock: Clock = systemClock,
): Promise<void> {
  const deadline = new Deadline(clock, STOP_MS_MAX);
  const isServer = () => serversBeside(place).some(({ pid }) => pid === record.pid);
  const proof = new Deadline(clock, PROOF_MS_MAX);
  while (isRunning(record) && !isServer()) {
    if (proof.remainingMs() === 0) {
      throw new LocalServerError(
        `process ${record.pid}, which ${place.recordFile} names, is no local server of ${place.folder}: it is left alone; remove that file`,
      );
    }
    await sleep(clock, POLL_MS);
  }
  send(record, 'SIGTERM');
  while (isRunning(record)) {
    if (deadline.remainingMs() === 0 && isServer()) send(record, 'SIGKILL');
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

/**
 * In a session of its own, with an environment of its own: it must not end, or know, what happened to start it. Returns
 * the server that was there before it, if there was one.
 */
async function start(
  order: DaemonOrder,
  clock: Clock,
  deadline: Deadline,
): Promise<ServerProcess | undefined> {
  const { place } = order;
  const logFd = openSync(place.logFile, 'a', 0o600);
  let child: ChildProcess;
  try {
    const entry = daemonEntry();
    child = spawn(process.execPath, [...entry.flags, entry.file, JSON.stringify(order)], {
      cwd: place.folder,
      detached: true,
      env: Object.fromEntries([
        ...INHERITED.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])),
        [PLACE_VARIABLE, placeMark(place)],
      ]),
      stdio: ['ignore', 'ignore', logFd, 'pipe'],
    });
  } finally {
    closeSync(logFd);
  }
  const answer = await answerOf(child, clock, deadline);
  child.unref();
  if ('failed' in answer) throw new LocalServerError(`${answer.failed}; see ${place.logFile}`);
  return 'other' in answer ? answer.other : undefined;
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

function idleMsFrom(env: Environment): number {
  const text = env['HOLDFAST_LOCAL_IDLE'];
  if (!text) return IDLE_MS;
  const idleMs = parseDuration(text);
  if (idleMs === undefined || !Number.isSafeInteger(idleMs)) {
    throw new TypeError(`HOLDFAST_LOCAL_IDLE: ${JSON.stringify(text)} given; such as 10m is needed`);
  }
  return idleMs;
}

function sleep(clock: Clock, durationMs: number): Promise<void> {
  return new Promise((resolve) => clock.at(clock.nowMs() + durationMs, resolve));
}
