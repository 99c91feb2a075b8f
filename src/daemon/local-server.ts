import { chmodSync } from 'node:fs';
import { type Cancel, type Clock, Deadline, systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { ownIdentity, ownPlace } from '../base/process-identity.ts';
import type { DaemonOrder } from '../local/ensure-local-server.ts';
import { removeRecord, type ServerRecord, writeRecord } from '../local/server-record.ts';
import { type AssembledServer, assembleServer } from '../server/start-server.ts';
import { FolderInUseError } from '../server/storage/folder-lock.ts';
import { keepInPlace } from './keep-in-place.ts';
import { openLogFile } from './log-file.ts';

/** The one before it may still be closing its folder: it is not waited for any longer than this. */
const FOLDER_WAIT_MS = 12_000;
const POLL_MS = 20;
const IDLE_POLL_MS_MAX = 1_000;
/** What started it has still to connect: until then an idle time that is shorter than this does not end it. */
const FIRST_CONNECTION_MS_MAX = 5_000;

/**
 * Serves one user of one machine until it is stopped, or until nobody has been connected and nothing held for as long
 * as the order says (0: as soon as that is so). Returns the function that stops it.
 */
export async function serveLocally(
  { place, version, idleMs }: DaemonOrder,
  clock: Clock = systemClock,
): Promise<(reason: string) => Promise<void>> {
  const log = openLogFile(place.logFile);
  const server = await open({ folder: place.dataFolder, socketPath: place.socketPath, clock, log }, clock);
  chmodSync(place.socketPath, 0o600);
  const record: ServerRecord = {
    ...ownIdentity(),
    ...ownPlace(),
    version,
    folder: place.folder,
    socketPath: place.socketPath,
    since: new Date(clock.wallMs()).toISOString(),
  };
  writeRecord(place, record);
  const upkeep = keepInPlace(server, { place, record, clock, log });
  let stopped: Promise<void> | undefined;
  const stop = (reason: string) => {
    stopped ??= (async () => {
      log('info', 'stopping', { reason });
      cancel();
      await upkeep.stop();
      // First: who reads it from now on starts another, which waits for this one's folder.
      removeRecord(place);
      await server.running.stop();
    })();
    return stopped;
  };
  const cancel = whenIdle(server, clock, idleMs, () => void stop(`idle for ${idleMs} ms`));
  return stop;
}

async function open(
  options: { readonly folder: string; readonly socketPath: string; readonly clock: Clock; readonly log: Log },
  clock: Clock,
): Promise<AssembledServer> {
  const deadline = new Deadline(clock, FOLDER_WAIT_MS);
  for (;;) {
    try {
      return await assembleServer({ ...options, fourLetterWords: '*' });
    } catch (error) {
      if (!(error instanceof FolderInUseError) || deadline.remainingMs() === 0) throw error;
      await new Promise<void>((resolve) => clock.at(clock.nowMs() + POLL_MS, resolve));
    }
  }
}

/** Whatever is held belongs to a session, and a session outlives its connection by its timeout. */
function whenIdle({ core }: AssembledServer, clock: Clock, idleMs: number, run: () => void): Cancel {
  const isIdle = () => core.connections.size === 0 && core.sessions.count === 0;
  const pollMs = Math.min(IDLE_POLL_MS_MAX, Math.max(POLL_MS, idleMs / 4));
  let endAtMs = clock.nowMs() + Math.max(idleMs, FIRST_CONNECTION_MS_MAX);
  let seenZxid = core.zxid; // Whoever came and went between two looks has written.
  let cancel: Cancel = () => {};
  const lookLater = () => {
    cancel = clock.at(clock.nowMs() + pollMs, () => {
      if (!isIdle() || core.zxid !== seenZxid) endAtMs = clock.nowMs() + idleMs;
      else if (clock.nowMs() >= endAtMs) return run();
      seenZxid = core.zxid;
      lookLater();
    });
  };
  lookLater();
  return () => cancel();
}
