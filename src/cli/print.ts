import type { Console } from './console.ts';
import { jsonLine } from './json.ts';
import { paintFor } from './terminal/paint.ts';
import { type Column, tableLines } from './terminal/table.ts';

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
