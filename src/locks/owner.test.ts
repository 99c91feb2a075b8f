import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkOwnerFacts, checkPeopleText, decodeOwner, ownerEncoder, ownerText } from './owner.ts';

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

describe('what a program says of itself', () => {
  const labelled = (bytes: number) => ({ labels: { t: 'x'.repeat(bytes - '{"labels":{"t":""}}'.length) } });

  test('may have 2 048 bytes as JSON, and not one more', () => {
    expect(() => checkOwnerFacts(labelled(2_048))).not.toThrow();
    expect(() => checkOwnerFacts(labelled(2_049))).toThrow(
      '2049 bytes given, as JSON; at most 2048 are allowed',
    );
    expect(() => checkOwnerFacts({ app: 'é'.repeat(1_024) })).toThrow(RangeError);
  });

  test('and why it contends 1 024 bytes', () => {
    expect(() => checkPeopleText('reason', 'é'.repeat(512))).not.toThrow();
    expect(() => checkPeopleText('reason', `${'é'.repeat(512)}x`)).toThrow('reason: 1025 bytes in UTF-8');
    expect(() => checkPeopleText('reason', 7 as never)).toThrow(TypeError);
  });
});

describe('an owner in one line', () => {
  test.each([
    [{ app: 'billing', host: 'h', pid: 7 }, 'billing@h:7'],
    [{ app: 'billing', host: 'h' }, 'billing@h'],
    [{ app: 'billing' }, 'billing'],
    [{ host: 'h', pid: 7 }, 'h:7'],
    [{ text: '10.0.0.1' }, '10.0.0.1'],
    [{ pid: 7 }, undefined],
    [{}, undefined],
    [{ text: 'one\nnot granted\u001b[2J' }, 'one not granted [2J'],
    [{ app: 'a'.repeat(300), host: 'h' }, 'a'.repeat(200)],
  ])('%j', (owner, text) => {
    expect(ownerText(owner)).toBe(text);
  });
});
