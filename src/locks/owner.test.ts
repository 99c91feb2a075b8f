import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeOwner, ownerEncoder } from './owner.ts';

describe("a contender's data", () => {
  test('says when it joined, whatever was said before', () => {
    const encode = ownerEncoder({ host: 'h', pid: 1, app: 'a' });
    const sinceOf = (wallMs: number) => decodeOwner(Buffer.from(encode({ wallMs }))).since;
    const anyMs = fc.oneof(
      fc.integer({ min: 0, max: 4_000 }),
      fc.integer({ min: 0, max: 4_102_444_800_000 }),
    );
    fc.assert(
      fc.property(fc.array(anyMs), (times) => {
        for (const wallMs of times) expect(sinceOf(wallMs)).toBe(new Date(wallMs).toISOString());
      }),
    );
  });

  test('is read back as it was written', () => {
    const facts = { host: 'h"1', pid: 7, app: 'a\\b', labels: { team: 'x' } };
    const data = Buffer.from(ownerEncoder(facts)({ reason: 'a "reason"', wallMs: 0 }));
    expect(decodeOwner(data)).toEqual({ ...facts, reason: 'a "reason"', since: '1970-01-01T00:00:00.000Z' });
  });
});
