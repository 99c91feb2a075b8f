import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openLogFile } from './log-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('a log file', () => {
  test('has a line of JSON for each message, for its owner only', () => {
    const file = join(folder, 'server.log');
    openLogFile(file)('warn', 'the disk is slow', { syncMs: 1_200, error: new Error('why'), zxid: 5n });
    expect(linesOf(file)).toMatchObject([
      { level: 'warn', message: 'the disk is slow', syncMs: 1_200, error: 'why', zxid: '5' },
    ]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('does not grow for ever, also over restarts; the end is kept', () => {
    const file = join(folder, 'server.log');
    for (let start = 0; start < 10; start++) {
      const log = openLogFile(file, 1_000);
      for (let line = 0; line < 10; line++) log('info', 'line', { number: start * 10 + line });
    }
    expect(statSync(file).size).toBeLessThan(1_200);
    expect(statSync(`${file}.1`).size).toBeLessThan(1_200);
    const numbers = [...linesOf(`${file}.1`), ...linesOf(file)].map(({ number }) => number);
    expect(numbers.at(-1)).toBe(99);
    expect(numbers).toEqual(numbers.map((_each, index) => 100 - numbers.length + index));
  });

  test('that cannot be written is nothing to its server', () => {
    const log = openLogFile(join(folder, 'no', 'such', 'folder', 'server.log'));
    expect(() => log('info', 'server started')).not.toThrow();
  });
});
