// The process of the local server: `main.ts <order as JSON>`. Started by src/local/ensure-local-server.ts.
import { closeSync, writeSync } from 'node:fs';
import type { DaemonAnswer, DaemonOrder } from '../local/ensure-local-server.ts';
import { serveLocally } from './local-server.ts';

const ANSWER_FD = 3;

const order = JSON.parse(process.argv[2] ?? '') as DaemonOrder;
process.title = 'holdfast local server';
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
  const stop = await serveLocally(order);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(`by ${signal}`));
  process.on('SIGHUP', () => {});
  answer({ listening: true });
} catch (error) {
  console.error(error);
  answer({ failed: (error as Error).message });
  process.exitCode = 1;
}
