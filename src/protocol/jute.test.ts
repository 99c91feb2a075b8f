import { describe, expect, test } from 'vitest';
import { InvariantError } from '../base/assert.ts';
import { ProtocolError } from './errors.ts';
import { JuteReader } from './jute-reader.ts';
import { JuteWriter } from './jute-writer.ts';
import { type Codec, nullableVector, vector } from './record.ts';

/** The size of a busy writer's slabs: tests go to it and past it. */
const SLAB_BYTES = 16 * 1024;
/** The size of a new writer's slab, and of all slabs of one that writes little. */
const SLAB_BYTES_MIN = 512;

const bytesOf = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const hexOf = (write: (out: JuteWriter) => void) => {
  const out = new JuteWriter();
  write(out);
  return out.take().toString('hex');
};

describe('JuteWriter', () => {
  test.each<[string, (out: JuteWriter) => void, string]>([
    ['int', (out) => out.int(-2), 'fffffffe'],
    ['long', (out) => out.long(-(2n ** 63n)), '8000000000000000'],
    ['true', (out) => out.boolean(true), '01'],
    ['false', (out) => out.boolean(false), '00'],
    ['null buffer', (out) => out.buffer(null), 'ffffffff'],
    ['empty buffer', (out) => out.buffer(new Uint8Array()), '00000000'],
    ['buffer', (out) => out.buffer(new Uint8Array([7, 8])), '000000020708'],
    ['null string', (out) => out.ustring(null), 'ffffffff'],
    ['empty string', (out) => out.ustring(''), '00000000'],
    ['ASCII string', (out) => out.ustring('/a'), '000000022f61'],
    ['string of two-byte characters', (out) => out.ustring('aé'), '0000000361c3a9'],
    ['string of three-byte characters', (out) => out.ustring('€'), '00000003e282ac'],
    ['string beyond the BMP', (out) => out.ustring('\u{1f512}'), '00000004f09f9492'],
    ['half a surrogate pair, as a replacement', (out) => out.ustring('\ud83d'), '00000003efbfbd'],
  ])('writes a %s', (_, write, hex) => {
    expect(hexOf(write)).toBe(hex);
  });

  test('writes a view into a larger buffer without what surrounds it', () => {
    const view = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
    expect(hexOf((out) => out.buffer(view))).toBe('000000020203');
  });

  test.each([0, 1, 47, 48, 49, 50, 1_000, SLAB_BYTES, 100_000])(
    'writes a string of %i characters whole',
    (length) => {
      for (const character of ['a', 'é', '€']) {
        const value = character.repeat(length);
        const out = new JuteWriter();
        out.ustring(value);
        const written = out.take();
        expect(written.readInt32BE(0)).toBe(Buffer.byteLength(value));
        expect(written.subarray(4).toString('utf8') === value).toBe(true);
      }
    },
  );

  test('refuses a number that does not fit', () => {
    const out = new JuteWriter();
    expect(() => out.int(2 ** 31)).toThrow(RangeError);
    expect(() => out.long(2n ** 63n)).toThrow(RangeError);
    expect(out.byteLength).toBe(0);
  });

  test('says how many bytes are written and not yet taken', () => {
    const out = new JuteWriter();
    expect(out.byteLength).toBe(0);
    out.int(1);
    out.ustring('abc');
    expect(out.byteLength).toBe(11);
    out.take();
    expect(out.byteLength).toBe(0);
    expect(out.take().byteLength).toBe(0);
  });

  test('never changes bytes it has handed out', () => {
    const out = new JuteWriter();
    const taken: { bytes: Buffer; hex: string }[] = [];
    // Enough for many slabs, in steps that end before, at and behind the end of one.
    for (let step = 0; step < 300; step++) {
      const mark = out.beginFrame();
      out.int(step);
      out.buffer(Buffer.alloc((step * 37) % 1_000, step));
      if (step % 5 === 0) out.dropFrame(mark);
      else out.endFrame(mark);
      if (step % 3 !== 0) continue;
      const bytes = out.take();
      taken.push({ bytes, hex: bytes.toString('hex') });
    }
    expect(taken.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)).toBeGreaterThan(5 * SLAB_BYTES);
    for (const { bytes, hex } of taken) expect(bytes.toString('hex') === hex).toBe(true);
  });

  test('goes on behind what was taken in the same slab', () => {
    const out = new JuteWriter();
    out.int(1);
    const first = out.take();
    out.int(2);
    const second = out.take();
    expect(second.buffer).toBe(first.buffer);
    expect(second.byteOffset).toBe(first.byteOffset + first.byteLength);
  });

  test('fills a slab to its last byte before it takes another', () => {
    const out = new JuteWriter();
    out.buffer(Buffer.alloc(SLAB_BYTES_MIN - 8, 1));
    const first = out.take();
    out.int(2);
    const last = out.take();
    out.boolean(true);
    const beyond = out.take();
    expect(last.buffer).toBe(first.buffer);
    expect(beyond.buffer).not.toBe(first.buffer);
    expect([...last, ...beyond]).toEqual([0, 0, 0, 2, 1]);
  });

  test('has small slabs as long as little is written at a time, and large ones from then on', () => {
    const out = new JuteWriter();
    const slabBytes = (writeBytes: number) => {
      const sizes = Array.from({ length: 1_000 }, () => {
        out.buffer(Buffer.alloc(writeBytes - 4));
        return out.take().buffer.byteLength;
      });
      return [...new Set(sizes)];
    };
    expect(slabBytes(20)).toEqual([SLAB_BYTES_MIN]); // A ping's answer.
    expect(slabBytes(4_000).at(-1)).toBe(SLAB_BYTES);
    expect(slabBytes(20).at(-1)).toBe(SLAB_BYTES_MIN);
  });

  test('keeps what is not taken yet when it moves to another slab', () => {
    const out = new JuteWriter();
    out.buffer(Buffer.alloc(SLAB_BYTES - 100));
    out.take();
    const mark = out.beginFrame();
    out.ustring('before the move');
    out.buffer(Buffer.alloc(3 * SLAB_BYTES, 5));
    out.ustring('after the move');
    const frameBytes = out.endFrame(mark);
    const frame = out.take();
    expect(frame.byteLength).toBe(4 + frameBytes);
    const input = new JuteReader(frame);
    expect(input.int()).toBe(frameBytes);
    expect(input.ustring()).toBe('before the move');
    expect(input.buffer()!.equals(Buffer.alloc(3 * SLAB_BYTES, 5))).toBe(true);
    expect(input.ustring()).toBe('after the move');
    expect(input.remaining).toBe(0);
  });

  test('frames what is written between begin and end', () => {
    expect(
      hexOf((out) => {
        const outer = out.beginFrame();
        out.boolean(true);
        expect(out.endFrame(outer)).toBe(1);
        const empty = out.beginFrame();
        expect(out.endFrame(empty)).toBe(0);
      }),
    ).toBe('0000000101 00000000'.replaceAll(' ', ''));
  });

  test('drops a frame and nothing before it', () => {
    expect(
      hexOf((out) => {
        const kept = out.beginFrame();
        out.boolean(true);
        out.endFrame(kept);
        const dropped = out.beginFrame();
        out.buffer(Buffer.alloc(2 * SLAB_BYTES)); // The slab changes under the mark.
        out.dropFrame(dropped);
        expect(out.byteLength).toBe(5);
        const next = out.beginFrame();
        out.boolean(false);
        out.endFrame(next);
      }),
    ).toBe('00000001010000000100');
  });

  test('drops a frame begun behind bytes already taken', () => {
    const out = new JuteWriter();
    out.int(1);
    const taken = out.take();
    const mark = out.beginFrame();
    out.int(2);
    out.dropFrame(mark);
    expect(out.byteLength).toBe(0);
    out.int(3);
    expect(out.take()).toEqual(bytesOf('00000003'));
    expect(taken).toEqual(bytesOf('00000001'));
  });

  test('does not end a frame whose beginning was taken', () => {
    const out = new JuteWriter();
    const mark = out.beginFrame();
    out.take();
    expect(() => out.endFrame(mark)).toThrow(InvariantError);
  });
});

describe('JuteReader', () => {
  const read = <T>(hex: string, field: (input: JuteReader) => T) => field(new JuteReader(bytesOf(hex)));

  test.each<[string, (input: JuteReader) => unknown, string]>([
    ['int', (input) => input.int(), '00000001'],
    ['long', (input) => input.long(), '0000000000000001'],
    ['boolean', (input) => input.boolean(), '01'],
    ['buffer', (input) => input.buffer(), '00000003 616263'],
    ['string', (input) => input.ustring(), '00000003 616263'],
    ['count', (input) => input.count(1), '00000003 616263'],
  ])('refuses a truncated %s, wherever it ends', (_, field, hex) => {
    const whole = bytesOf(hex);
    expect(() => field(new JuteReader(whole))).not.toThrow();
    for (let end = 0; end < whole.byteLength; end++) {
      expect(() => field(new JuteReader(whole.subarray(0, end))), `${end} bytes`).toThrow(ProtocolError);
    }
  });

  test.each(['fffffffe', '80000000', '00000002', '7fffffff'])(
    'refuses a field of length %s in one byte',
    (length) => {
      expect(() => read(`${length} 61`, (input) => input.buffer())).toThrow(ProtocolError);
      expect(() => read(`${length} 61`, (input) => input.ustring())).toThrow(ProtocolError);
    },
  );

  test('says what was claimed and what is there', () => {
    expect(() => read('7fffffff 61', (input) => input.ustring())).toThrow(
      'field of 2147483647 bytes with 1 bytes left',
    );
    expect(() => read('3b9aca00 61', (input) => input.count(4))).toThrow(
      'vector of 1000000000 elements in 1 bytes',
    );
  });

  test('reads nothing of its own accord behind the last field', () => {
    const input = new JuteReader(bytesOf('00000001 deadbeef'));
    expect(input.int()).toBe(1);
    expect(input.remaining).toBe(4);
  });

  test('hands out a buffer that later changes of the chunk do not reach', () => {
    const chunk = bytesOf('00000002 0708');
    const value = new JuteReader(chunk).buffer();
    chunk.fill(0xff);
    expect(value).toEqual(Buffer.from([7, 8]));
  });

  test('reads a frame that is a view into a larger chunk', () => {
    const chunk = bytesOf('ffffffff 00000003 616263 ffffffff');
    const input = new JuteReader(chunk.subarray(4, 11));
    expect(input.ustring()).toBe('abc');
    expect(() => input.boolean()).toThrow(ProtocolError);
  });

  test('replaces bytes that are not UTF-8 instead of failing', () => {
    expect(read('00000002 ff61', (input) => input.ustring())).toBe('\ufffda');
  });

  test.each([
    [-1, null],
    [-2, 0],
    [-(2 ** 31), 0],
    [0, 0],
    [3, 3],
  ])('reads a count of %i as %s', (count, result) => {
    const bytes = Buffer.alloc(4 + 12);
    bytes.writeInt32BE(count);
    expect(new JuteReader(bytes).count(4)).toBe(result);
  });

  test.each([
    ['one more than can follow', 4],
    ['a billion', 1_000_000_000],
    ['the largest there is', 2 ** 31 - 1],
  ])('refuses a count that is %s before it looks at an element', (_, count) => {
    let readCount = 0;
    const element: Codec<number> = {
      bytesMin: 4,
      write: (out, value) => out.int(value),
      read(input) {
        readCount++;
        return input.int();
      },
    };
    const bytes = Buffer.alloc(4 + 3 * 4);
    for (const codec of [vector(element), nullableVector(element)]) {
      bytes.writeInt32BE(count);
      expect(() => codec.read(new JuteReader(bytes))).toThrow(ProtocolError);
      expect(readCount).toBe(0);
    }
    bytes.writeInt32BE(3);
    expect(vector(element).read(new JuteReader(bytes))).toEqual([0, 0, 0]);
  });
});
