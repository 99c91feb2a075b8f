import { openSync, writeSync } from 'node:fs';
import { encodeEvent, type HistoryEvent } from '../../simulation/checker/history.ts';

/** Milliseconds of the machine's monotonic clock, which all processes of the machine share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** Writes a process's part of the history to a file of its own, each event at once: the process may be killed next. */
export class Recorder {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  record(event: HistoryEvent): void {
    writeSync(this.#file, `${encodeEvent(event)}\n`);
  }
}
