import { sleep } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import type { Console } from '../console.ts';
import { isQuit, readKeys } from '../terminal/keys.ts';
import { type Paint, paintFor, type Tone } from '../terminal/paint.ts';

/** Milliseconds that a person needs for a line. */
const READING_MS = 900;

/** Tells a story on standard output: with time to read on a terminal, at once elsewhere. */
export class Narrator implements Disposable {
  readonly paint: Paint;
  readonly #console: Console;
  readonly #signal: AbortSignal;
  readonly #keys: Disposable;
  #hurried = new AbortController();

  /** On a terminal a key goes on at once, and q or Ctrl-C calls `stop`. */
  constructor(console: Console, signal: AbortSignal, stop: () => void) {
    this.#console = console;
    this.#signal = signal;
    this.paint = paintFor(console.stdout, console.env);
    this.#keys = readKeys(console, (key) => {
      if (isQuit(key)) stop();
      this.#hurried.abort();
    });
  }

  get interactive(): boolean {
    return Boolean(this.#console.stdout.isTTY && this.#console.stdin.isTTY);
  }

  async heading(text: string): Promise<void> {
    this.#write(`\n${this.paint('heading', text)}`);
    await this.pause();
  }

  async say(text: string, tone: Tone = 'plain'): Promise<void> {
    this.#write(text === '' ? '' : `   ${this.paint(tone, text)}`);
    if (text !== '') await this.pause();
  }

  /** Several lines at once. */
  show(lines: readonly string[]): void {
    for (const line of lines) this.#write(line === '' ? '' : `   ${line}`);
  }

  /** Time to read, on a terminal. */
  async pause(readingMs = READING_MS): Promise<void> {
    this.#signal.throwIfAborted();
    if (!this.interactive) return;
    this.#hurried = new AbortController();
    await sleep(systemClock, readingMs, AbortSignal.any([this.#signal, this.#hurried.signal])).catch(
      () => {},
    );
    this.#signal.throwIfAborted();
  }

  [Symbol.dispose](): void {
    this.#keys[Symbol.dispose]();
  }

  #write(line: string): void {
    this.#console.stdout.write(`${line}\n`);
  }
}
