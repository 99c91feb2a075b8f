// The process of the local server: `main.ts <order as JSON>`. Started by src/local/ensure-local-server.ts.
import { closeSync, writeSync } from 'node:fs';
import { processStat } from '../base/process-identity.ts';
import type { DaemonAnswer, DaemonOrder } from '../local/ensure-local-server.ts';
import { processTitle, type ServerProcess, serversBeside } from '../local/other-servers.ts';
import { serveLocally } from './local-server.ts';

const ANSWER_FD = 3;

const order = JSON.parse(process.argv[2] ?? '') as DaemonOrder;
process.title = processTitle(order.place);
process.umask(0o077); // The socket and every file are this user's alone, from the moment they are made.

const answer = (value: DaemonAnswer) => {
  try {
    writeSync(ANSWER_FD, `${JSON.stringify(value)}\n`);
    closeSync(ANSWER_FD);
  } catch {
    // Whoever started it is gone; others will come.
  }
};

try {
  // Of two that were started at the same moment, from where neither starter sees the other's files, one goes on.
  const other = serversBeside(order.place).find(isBeforeThis);
  if (other) {
    answer({ other });
  } else {
    const stop = await serveLocally(order);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(`by ${signal}`));
    process.on('SIGHUP', () => {});
    answer({ listening: true });
  }
} catch (error) {
  console.error(error);
  answer({ failed: (error as Error).message });
  process.exitCode = 1;
}

function isBeforeThis({ pid, startedAtTicks }: ServerProcess): boolean {
  const ticks = Number(startedAtTicks) - Number(processStat(process.pid)?.startedAtTicks);
  return ticks < 0 || (!(ticks > 0) && pid < process.pid);
}
