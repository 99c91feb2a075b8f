import { describe, expect, test } from 'vitest';
import {
  describeForeign,
  entryNameAt,
  entryNameBefore,
  entryPrefix,
  inOrder,
  parseEntry,
  tied,
  uuidOf,
} from './entry-name.ts';
import type { QueueEntry } from './lock-queue.ts';

describe('names of entries', () => {
  test.each([
    ["ours and Curator's mutex", '_c_3f1c2d3e-0000-4000-8000-000000000000-lock-0000000007', 'exclusive', 7],
    ["Go's", '_c_0123456789abcdef0123456789abcdef-lock-0000000012', 'exclusive', 12],
    ["Curator's writer", '_c_3f1c2d3e-0000-4000-8000-000000000000-__WRIT__0000000003', 'write', 3],
    ["Curator's reader", '_c_3f1c2d3e-0000-4000-8000-000000000000-__READ__0000000004', 'read', 4],
    ['an upgradable reader', '_c_x-__UPGR____READ__0000000004', 'upgradable', 4],
    ['an upgrade', '_c_x-__UPGR____WRIT__0000000004', 'upgraded', 4],
    ["Curator's latch", '_c_3f1c2d3e-0000-4000-8000-000000000000-latch-0000000005', 'leader', 5],
    ["Curator's lease", '_c_3f1c2d3e-0000-4000-8000-000000000000-lease-0000000006', 'lease', 6],
    ['without protection', 'lock-0000000001', 'exclusive', 1],
    ['the marker twice', 'lock-x-lock-0000000002', 'exclusive', 2],
    ['the last number', '_c_x-lock-2147483647', 'exclusive', 2147483647],
    ['a number that ran over', '_c_x-lock--2147483648', 'exclusive', -2147483648],
    ['a small negative number', '_c_x-lock--000000001', 'exclusive', -1],
  ] as const)('are read: %s', (_what, name, role, sequence) => {
    expect(parseEntry(name)).toEqual({ name, role, sequence, czxid: undefined });
  });

  test.each([
    ['0', '0'],
    ['lock-', 'lock-'],
    ['lock-12', 'lock-12'],
    ['_c_x-lock-0000000001x', '_c_x-lock-0000000001x'],
    ['0123456789abcdef0123456789abcdef__lock__0000000001', /kazoo/],
    ['0123456789abcdef0123456789abcdef__rlock__0000000001', /kazoo/],
    ['x-72057594037927936-0000000001', /WriteLock/],
    ['n_0000000001', /election/],
    ['leases', 'leases'],
  ])('that are none are told apart: %s', (name, description) => {
    expect(parseEntry(name)).toBeUndefined();
    expect(describeForeign(name)).toMatch(description);
  });

  test('are made as they are read', () => {
    const id = uuidOf(Uint8Array.from({ length: 16 }, (_, index) => index * 17));
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const written = parseEntry(`${entryPrefix(id, 'write')}0000000042`)!;
    expect(written).toMatchObject({ role: 'write', sequence: 42 });
    expect(entryNameAt('other', 'read', written)).toBe('_c_other-__READ__0000000042');
  });
});

describe('a place right before another', () => {
  const at = (digits: string) => parseEntry(`_c_x-__WRIT__${digits}`)!;

  test('is behind everyone ahead of that one, here and as text', () => {
    const name = entryNameBefore('id', 'upgraded', at('0000000010'))!;
    expect(name).toBe('_c_id-__UPGR____WRIT__0000000009+');
    const entries = [at('0000000010'), parseEntry(name)!, at('0000000009'), at('0000000008')];
    expect(tied(entries)).toEqual([]);
    expect(entries.sort(inOrder).map(({ name }) => name.replace(/.*__/, ''))).toEqual([
      '0000000008',
      '0000000009',
      '0000000009+',
      '0000000010',
    ]);
    expect(['0000000010', '0000000009+', '0000000009'].sort()).toEqual([
      '0000000009',
      '0000000009+',
      '0000000010',
    ]);
  });

  test('is refused where numbers do not say who is ahead', () => {
    for (const digits of ['0000000000', '2147483647', '-2147483648', '0000000009+']) {
      expect(entryNameBefore('id', 'upgraded', at(digits))).toBeUndefined();
    }
  });
});

describe('the order of turns', () => {
  const entry = (sequence: number, czxid?: bigint): QueueEntry => ({
    name: `n${sequence}/${czxid}`,
    role: 'exclusive',
    sequence,
    czxid,
  });

  test('is that of the numbers, also where they run over', () => {
    const numbers = [2147483646, 2147483647, -2147483648, -2147483647];
    const shuffled = [numbers[2]!, numbers[0]!, numbers[3]!, numbers[1]!].map((number) => entry(number));
    expect(shuffled.sort(inOrder).map(({ sequence }) => sequence)).toEqual(numbers);
  });

  test('is that of the transactions where the number sticks', () => {
    const stuck = [entry(2147483647, 9n), entry(2147483646), entry(2147483647, 8n)];
    expect(stuck.sort(inOrder).map(({ czxid }) => czxid)).toEqual([undefined, 8n, 9n]);
    expect(tied(stuck)).toHaveLength(2);
    expect(tied([entry(1), entry(2)])).toEqual([]);
  });
});
