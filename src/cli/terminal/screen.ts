import type { Console } from '../console.ts';

const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const CLEAR_LINE_END = '\x1b[K';
const CLEAR_BELOW = '\x1b[J';

/** The whole terminal, given back as it was when disposed. */
export class Screen implements Disposable {
  readonly #stdout: Console['stdout'];

  constructor({ stdout }: Pick<Console, 'stdout'>) {
    this.#stdout = stdout;
    stdout.write(ENTER);
  }

  get columns(): number {
    return this.#stdout.columns || 80;
  }
  get rows(): number {
    return this.#stdout.rows || 24;
  }

  /** Draws over what is there, so that nothing flickers; lines beyond the last row are left out. */
  draw(lines: readonly string[]): void {
    const shown = lines.slice(0, this.rows).map((line) => `${line}${CLEAR_LINE_END}`);
    this.#stdout.write(`${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`);
  }

  [Symbol.dispose](): void {
    this.#stdout.write(LEAVE);
  }
}
