import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { defaultLimits } from '../../src/server/server-limits.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Where every limit must be on the page. */
const FOLDERS = ['locks', 'queue', 'client', 'session'];
/** What looks like a limit and is none for anyone but its own file. */
const INTERNAL = new Set([
  'src/client/arguments.ts INT32_MAX', // As that of the options.
  'src/client/call-options.ts TIMEOUT_MS_MAX', // As that of a lock.
  'src/client/server-list.ts FIRST_DELAY_MS_MAX', // How far apart clients begin.
  'src/locks/leader-election.ts CAUSES_MAX', // Of one error.
  'src/locks/lock-name.ts SHOWN_MAX', // Of a message.
  'src/locks/shared-place.ts DEAF_MS_MAX', // A guess at a stall.
  'src/queue/foreign-data-error.ts EXCERPT_BYTES_MAX', // Of a message.
  'src/session/read-run.ts UTF8_BYTES_MAX', // Of a character.
  'src/session/request-pipeline.ts XID_MAX', // Of the protocol.
]);
const UNITS: Readonly<Record<string, number>> = {
  KiB: 1_024,
  MiB: 1_024 ** 2,
  GiB: 1_024 ** 3,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
};

interface Row {
  readonly what: string;
  readonly value: string;
  readonly tests: readonly string[];
  readonly file: string;
  readonly name: string;
}

const rows = readFileSync(join(ROOT, 'docs/limits.md'), 'utf8')
  .split('\n')
  .flatMap((line): Row[] => {
    const cells = line.split('|').map((cell) => cell.trim());
    const [, what, value, , , tests, where] = cells;
    const source = /^`([\w./-]+)` `(\w+)`$/.exec(where ?? '');
    if (!source) return [];
    const named = [...tests!.matchAll(/`([\w./-]+)`/g)].map(([, path]) => path!);
    return [{ what: what!, value: value!, tests: named, file: source[1]!, name: source[2]! }];
  });

/** `64 KiB`, `1 000 000`, `2^62`, `2^31-1 ms`, `none`. */
function pageValue(text: string): number {
  if (text === 'none') return Number.POSITIVE_INFINITY;
  if (/^\d+\.\d+$/.test(text)) return Number(text);
  const power = /^2\^(\d+)(-1)?/.exec(text);
  if (power) return 2 ** Number(power[1]) - (power[2] ? 1 : 0);
  const [, digits, unit] = /^([\d ]+?)(?: ([A-Za-z]+))?$/.exec(text) ?? [];
  return Number(digits?.replaceAll(' ', '')) * (UNITS[unit ?? ''] ?? 1);
}

/** What a source says of a constant, or of a field: a number, a product, or another constant's. */
function sourceValue(file: string, name: string): number {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const found = new RegExp(`(?:const ${name} =|^  ${name}:) ([^;,]+)[;,]`, 'm').exec(text);
  if (!found) throw new Error(`${file} has no ${name}`);
  return evaluated(found[1]!, file);
}

function evaluated(expression: string, file: string): number {
  const known: Readonly<Record<string, () => number>> = {
    REQUEST_BYTES_MAX: () => sourceValue('src/protocol/constants.ts', 'REQUEST_BYTES_MAX'),
    KIBIBYTE: () => sourceValue(file, 'KIBIBYTE'),
    MEBIBYTE: () => sourceValue(file, 'MEBIBYTE'),
    'Number.POSITIVE_INFINITY': () => Number.POSITIVE_INFINITY,
  };
  const named = (text: string) => known[text]?.();
  const number = (text: string) => named(text) ?? Number(text.replaceAll('_', '').replace(/n$/, ''));
  const power = (text: string) => {
    const [base, ...exponents] = text.split('**').map((part) => number(part.trim()));
    return exponents.reduce((value, exponent) => value ** exponent, base!);
  };
  const product = (text: string) =>
    text
      .split(/(?<!\*)\*(?!\*)/)
      .map((part) => power(part.trim()))
      .reduce((value, factor) => value * factor);
  const value = expression
    .split(' - ')
    .map((part) => product(part.trim()))
    .reduce((whole, part) => whole - part);
  if (Number.isNaN(value)) throw new Error(`${file}: ${expression} is no number`);
  return value;
}

describe('docs/limits.md', () => {
  test('has rows', () => expect(rows.length).toBeGreaterThan(70));

  test.each(rows)('$what: $value, as $name in $file', ({ value, file, name }) => {
    expect(pageValue(value)).toBe(sourceValue(file, name));
  });

  test('names tests that are there', () => {
    const missing = rows.flatMap(({ tests }) => tests).filter((path) => !existsSync(join(ROOT, path)));
    expect(missing).toEqual([]);
  });

  test('has every limit of the server', () => {
    const named = rows.filter(({ file }) => file === 'src/server/server-limits.ts').map(({ name }) => name);
    expect(named.sort()).toEqual(Object.keys(defaultLimits).sort());
  });

  test('has every constant of locks, queues, sessions and the client that is named a maximum', () => {
    const named = new Set(rows.map(({ file, name }) => `${file} ${name}`));
    const missing = FOLDERS.flatMap((folder) =>
      readdirSync(join(ROOT, 'src', folder))
        .filter((name) => name.endsWith('.ts') && !/\.test(-data)?\.ts$/.test(name))
        .flatMap((name) => {
          const file = `src/${folder}/${name}`;
          const text = readFileSync(join(ROOT, file), 'utf8');
          return [...text.matchAll(/^(?:export )?const ([A-Z0-9_]+_MAX) =/gm)].map(
            ([, max]) => `${file} ${max}`,
          );
        }),
    ).filter((constant) => !named.has(constant) && !INTERNAL.has(constant));
    expect(missing).toEqual([]);
  });
});
