import type { Console } from './console.ts';
import { jsonLine } from './json.ts';
import { paintFor } from './terminal/paint.ts';
import { type Column, tableLines } from './terminal/table.ts';
import { wrapped } from './terminal/wrapped.ts';

/** One JSON value on a line of its own. */
export function printJson({ stdout }: Pick<Console, 'stdout'>, value: unknown): void {
  stdout.write(jsonLine(value));
}

export function printLines({ stdout }: Pick<Console, 'stdout'>, lines: readonly string[]): void {
  stdout.write(lines.map((line) => `${line}\n`).join(''));
}

/** A table as wide as the terminal at most; whole where there is none. */
export function printTable<Row>(
  { stdout, env }: Pick<Console, 'stdout' | 'env'>,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): void {
  const width = stdout.isTTY ? stdout.columns || undefined : undefined;
  printLines({ stdout }, tableLines(columns, rows, { width, paint: paintFor(stdout, env) }));
}

/** A line of text as lines no wider than the terminal, broken between words, the later ones indented; whole elsewhere. */
export function wrappedLine({ stdout }: Pick<Console, 'stdout'>, line: string): string[] {
  return stdout.isTTY ? wrapped(line, stdout.columns || 80) : [line];
}
