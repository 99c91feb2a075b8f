import { displayWidth, fitted, truncated } from './display-width.ts';
import { type Paint, type Tone, unpainted } from './paint.ts';
import { visibleText } from './visible-text.ts';

/** One column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** Is made narrower when the table is too wide for the terminal; the others keep their width. */
  readonly shrinks?: boolean;
  text(row: Row): string;
  tone?(row: Row): Tone;
}

const GAP = '  ';
const SHRUNK_WIDTH_MIN = 8;

/**
 * Rows as lines of text, the first the titles. Cells are made harmless first, so that nobody's node can draw on the
 * screen; `width` is the terminal's, left out where there is none.
 */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, paint = unpainted }: { readonly width?: number | undefined; readonly paint?: Paint } = {},
): string[] {
  const cells = rows.map((row) => columns.map((column) => visibleText(column.text(row))));
  const widths = columns.map(({ title }, index) =>
    Math.max(displayWidth(title), ...cells.map((line) => displayWidth(line[index]!))),
  );
  if (width !== undefined) shrink(widths, columns, width);
  const line = (texts: readonly string[], tones: (index: number) => Tone) =>
    columns
      .map(({ align }, index) => {
        const last = index === columns.length - 1 && align !== 'right';
        const text = last
          ? truncated(texts[index]!, widths[index]!)
          : fitted(texts[index]!, widths[index]!, align);
        return paint(tones(index), text);
      })
      .join(GAP)
      .trimEnd();
  return [
    line(
      columns.map(({ title }) => title),
      () => 'heading',
    ),
    ...rows.map((row, at) => line(cells[at]!, (index) => columns[index]!.tone?.(row) ?? 'plain')),
  ];
}

/** Takes from the widest of those that may shrink until it fits, or until all are as narrow as they get. */
function shrink<Row>(widths: number[], columns: readonly Column<Row>[], width: number): void {
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (widths.length - 1)) - width;
  while (excess > 0) {
    let widest = -1;
    columns.forEach(({ shrinks }, index) => {
      const candidate = shrinks && widths[index]! > SHRUNK_WIDTH_MIN;
      if (candidate && (widest < 0 || widths[index]! > widths[widest]!)) widest = index;
    });
    if (widest < 0) return;
    widths[widest]!--;
    excess--;
  }
}
