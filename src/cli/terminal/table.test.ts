import { expect, test } from 'vitest';
import { displayWidth } from './display-width.ts';
import { paintFor } from './paint.ts';
import { type Column, tableLines } from './table.ts';

interface Row {
  readonly name: string;
  readonly count: number;
  readonly why: string;
}
const columns: Column<Row>[] = [
  { title: 'NAME', shrinks: true, text: ({ name }) => name },
  { title: 'COUNT', align: 'right', text: ({ count }) => String(count), tone: () => 'bad' },
  { title: 'WHY', shrinks: true, text: ({ why }) => why },
];
const rows: Row[] = [
  { name: 'member-123', count: 7, why: 'monthly charge' },
  { name: '会員', count: 12_345, why: '' },
  { name: 'evil\x1b[2J\nname', count: 0, why: 'two\r\nlines' },
];

test('columns line up by what a terminal draws, and nothing in a cell gets out of it', () => {
  expect(tableLines(columns, rows)).toEqual([
    'NAME               COUNT  WHY',
    'member-123             7  monthly charge',
    '会員               12345',
    'evil\\x1b[2J\\nname      0  two\\r\\nlines',
  ]);
});

test('a table that is too wide takes from its widest columns that may shrink', () => {
  const lines = tableLines(columns, rows, { width: 32 });
  expect(lines).toEqual([
    'NAME         COUNT  WHY',
    'member-123       7  monthly cha…',
    '会員         12345',
    'evil\\x1b[2…      0  two\\r\\nlines',
  ]);
  expect(Math.max(...lines.map(displayWidth))).toBe(32);
});

test('colours are for terminals, and only where NO_COLOR is not set', () => {
  const [, line] = tableLines(columns, rows, { paint: paintFor({ isTTY: true }, {}) });
  expect(line).toContain('\x1b[');
  for (const paint of [
    paintFor({ isTTY: false }, {}),
    paintFor({}, {}),
    paintFor({ isTTY: true }, { NO_COLOR: '1' }),
    paintFor({ isTTY: true }, { TERM: 'dumb' }),
  ]) {
    expect(tableLines(columns, rows, { paint })).toEqual(tableLines(columns, rows));
  }
});
