import { chmodSync, statSync } from 'node:fs';
import type { Cancel, Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { LocalPlace } from '../local/local-place.ts';
import { preparePlace } from '../local/private-folder.ts';
import { readRecord, type ServerRecord, writeRecord } from '../local/server-record.ts';
import type { AssembledServer } from '../server/start-server.ts';

const LOOK_MS = 1_000;

interface Surroundings {
  readonly place: LocalPlace;
  readonly record: ServerRecord;
  readonly clock: Clock;
  readonly log: Log;
}

/** Which file is at a path; undefined if none is. */
type FileIdentity = string | undefined;

/**
 * Looks each second whether the files by which the local server is found are still there, and puts back what a cleaner
 * of temporary files, or a hand, has removed: folder, socket, record, and what is kept on disk. Until then all that it
 * has granted is in memory, connections work, and no other server is started, since its process is seen.
 */
export function keepInPlace(server: AssembledServer, surroundings: Surroundings): { stop(): Promise<void> } {
  const { place, record, clock, log } = surroundings;
  let socket = identityOf(place.socketPath);
  let data = identityOf(place.dataFolder);
  let stopped = false;
  let looking: Promise<void> = Promise.resolve();
  let cancel: Cancel = () => {};
  const look = async () => {
    if (identityOf(place.dataFolder) !== data) {
      log('warn', 'the folder was removed: all is saved anew', { folder: place.dataFolder });
      preparePlace(place);
      await server.saveAnew();
      data = identityOf(place.dataFolder);
    }
    if (identityOf(place.socketPath) !== socket) {
      log('warn', 'the socket was removed: it is made again', { socketPath: place.socketPath });
      preparePlace(place);
      await server.listener.listenAnew({ path: place.socketPath });
      chmodSync(place.socketPath, 0o600);
      socket = identityOf(place.socketPath);
    }
    // Last: with it there, others come to the socket.
    const written = readRecord(place);
    if (written?.pid !== record.pid || written.startedAt !== record.startedAt) writeRecord(place, record);
  };
  const next = () => {
    cancel = clock.at(clock.nowMs() + LOOK_MS, () => {
      looking = look()
        .catch((error: Error) => log('warn', 'files that were removed cannot be made again', { error }))
        .finally(() => {
          if (!stopped) next();
        });
    });
  };
  next();
  return {
    async stop() {
      stopped = true;
      cancel();
      await looking;
    },
  };
}

function identityOf(path: string): FileIdentity {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat && `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
}
