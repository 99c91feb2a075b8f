import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { jsonLine } from '../json.ts';
import { failureText } from '../report-failure.ts';
import { fittedLine, type LinePart } from '../terminal/fitted-line.ts';
import { oneLine } from '../terminal/visible-text.ts';
import { wrappedFor } from '../terminal/wrapped.ts';

const STDERR_FD = 2;
const COLUMNS = 80;
const ABOVE = '\u001b[A';
const START = '\r\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** One thing that a run tells: for programs as it is, for people as `text`. */
export interface Word {
  readonly event: string;
  readonly [field: string]: unknown;
}

/**
 * What `run` says, all of it on standard error. Written to the file descriptor at once: nothing is in a buffer when
 * this process is stopped or killed.
 */
export class Words {
  readonly #json: boolean;
  readonly #quiet: boolean;
  readonly isTerminal: boolean;
  #lineShown = false;

  constructor({ json, quiet }: { readonly json: boolean; readonly quiet: boolean }) {
    this.#json = json;
    this.#quiet = quiet;
    this.isTerminal = !json && !quiet && isatty(STDERR_FD);
  }

  /** An event; `text` undefined is not worth a line to people. */
  tell(word: Word, text?: string): void {
    if (this.#json) return put(jsonLine(word));
    this.clearLine();
    if (text !== undefined && !this.#quiet) putLine(text);
  }

  /** Why the command was ended, or not begun: said also to those who want quiet. */
  complain(word: Word, text: string): void {
    if (this.#json) return put(jsonLine({ ...word, message: text }));
    this.clearLine();
    putLine(text);
  }

  /** That it did not come to it, and why. */
  fail(error: unknown, debug: boolean): void {
    this.clearLine();
    const text = failureText(error, { json: this.#json, debug });
    put(this.#json ? text : wrappedFor(process.stderr, text));
  }

  /** Replaces the line that is shown on a terminal. The cursor waits below it: what is typed does not continue it. */
  showLine(parts: readonly LinePart[]): void {
    if (!this.isTerminal) return;
    const line = fittedLine(parts, (process.stderr.columns || COLUMNS) - 1);
    put(`${this.#lineShown ? ABOVE : ''}${START}${line}\n`);
    this.#lineShown = true;
  }

  clearLine(): void {
    if (this.#lineShown) put(`${ABOVE}${START}${CLEAR_BELOW}`);
    this.#lineShown = false;
  }
}

function putLine(text: string): void {
  put(wrappedFor(process.stderr, `holdfast: ${oneLine(text)}\n`));
}

/** Nobody reads it any more, or not now: a run does not end, or wait, for want of a listener. */
function put(text: string): void {
  try {
    writeSync(STDERR_FD, text);
  } catch {
    // EPIPE, EAGAIN.
  }
}
