import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { capturedFrames } from './captured-frames.test-data.ts';
import { ProtocolError } from './errors.ts';
import { FrameDecoder } from './frame-decoder.ts';

const LIMIT = 1024;

function framed(payload: Uint8Array): Buffer {
  const prefix = Buffer.alloc(4);
  prefix.writeInt32BE(payload.byteLength);
  return Buffer.concat([prefix, payload]);
}

/** Everything the decoder yields when the stream arrives in pieces that end at the given places. */
function decode(stream: Buffer, cuts: readonly number[], decoder = new FrameDecoder(LIMIT)): string[] {
  const ends = [...cuts, stream.byteLength].sort((a, b) => a - b);
  const frames: string[] = [];
  let start = 0;
  for (const end of ends) {
    // A copy, as a socket gives: a decoder that looked beyond its chunk would be found out.
    const chunk = Buffer.from(stream.subarray(start, end));
    for (const frame of decoder.push(chunk)) frames.push(frame.toString('hex'));
    start = end;
  }
  return frames;
}

describe('frames', () => {
  const payloads = [[1, 2], [], [9], [], [], [3, 4, 5, 6, 7]].map((payload) => Buffer.from(payload));
  const stream = Buffer.concat(payloads.map(framed));
  const expected = payloads.map((payload) => payload.toString('hex'));

  test('are the same at whichever place the stream is cut', () => {
    for (let cut = 0; cut <= stream.byteLength; cut++) expect(decode(stream, [cut])).toEqual(expected);
  });

  test('are the same at whichever two places the stream is cut', () => {
    for (let first = 0; first <= stream.byteLength; first++) {
      for (let second = first; second <= stream.byteLength; second++) {
        expect(decode(stream, [first, second])).toEqual(expected);
      }
    }
  });

  test('are the same if the stream arrives byte by byte', () => {
    expect(decode(stream, [...stream.keys()])).toEqual(expected);
  });

  test('of a real server are the same however its stream is cut', () => {
    const served = capturedFrames.filter(({ from }) => from === 'server').map(({ bytes }) => bytes);
    const whole = Buffer.concat(served);
    const wanted = served.map((bytes) => bytes.subarray(4).toString('hex'));
    for (let cut = 0; cut <= whole.byteLength; cut++) expect(decode(whole, [cut])).toEqual(wanted);
  });

  test('of any length are the same however often the stream is cut', () => {
    const payload = fc.uint8Array({ maxLength: 300 });
    fc.assert(
      fc.property(
        fc.array(payload, { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (sent, seeds) => {
          const bytes = Buffer.concat(sent.map(framed));
          const cuts = seeds.map((seed) => seed % (bytes.byteLength + 1));
          expect(decode(bytes, cuts)).toEqual(sent.map((each) => Buffer.from(each).toString('hex')));
        },
      ),
    );
  });

  test('that arrive whole are handed out without a copy', () => {
    const chunk = framed(Buffer.from('payload'));
    expect(new FrameDecoder(LIMIT).push(chunk)[0]!.buffer).toBe(chunk.buffer);
  });

  test('handed out earlier do not change when more of the stream arrives', () => {
    const decoder = new FrameDecoder(LIMIT);
    const frames = [
      ...decoder.push(stream.subarray(0, 3)),
      ...decoder.push(stream.subarray(3, 13)),
      ...decoder.push(stream.subarray(13)),
    ];
    expect(frames.map((frame) => frame.toString('hex'))).toEqual(expected);
  });
});

describe('between frames', () => {
  test('the decoder is empty, and only there', () => {
    const decoder = new FrameDecoder(LIMIT);
    const stream = Buffer.concat([
      framed(Buffer.from('ab')),
      framed(Buffer.alloc(0)),
      framed(Buffer.from('c')),
    ]);
    const boundaries = [6, 10, 15];
    expect(decoder.empty).toBe(true);
    for (let at = 0; at < stream.byteLength; at++) {
      decoder.push(stream.subarray(at, at + 1));
      expect(decoder.empty, `after ${at + 1} bytes`).toBe(boundaries.includes(at + 1));
    }
  });

  test('a chunk without bytes changes nothing', () => {
    const decoder = new FrameDecoder(LIMIT);
    expect(decoder.push(Buffer.alloc(0))).toEqual([]);
    decoder.push(Buffer.from([0, 0]));
    expect(decoder.push(Buffer.alloc(0))).toEqual([]);
    expect(decoder.push(Buffer.from([0, 1, 7]))).toEqual([Buffer.from([7])]);
  });
});

describe('the limit', () => {
  test('is met by a frame of exactly that length, in one piece or in many', () => {
    const stream = framed(Buffer.alloc(LIMIT, 0xab));
    for (const cuts of [[], [4], [1, 2, 3, 4, 5], [LIMIT]]) {
      expect(decode(stream, cuts)).toEqual(['ab'.repeat(LIMIT)]);
    }
  });

  test.each([
    [LIMIT + 1, '00000401'],
    [2 ** 31 - 1, '7fffffff'],
    [-1, 'ffffffff'],
    [-(2 ** 31), '80000000'],
  ])('is exceeded by a frame said to have %i bytes, as soon as it says so', (bytes, hex) => {
    const prefix = Buffer.from(hex, 'hex');
    for (let cut = 0; cut <= prefix.byteLength; cut++) {
      const decoder = new FrameDecoder(LIMIT);
      const arrive = () => [...decoder.push(prefix.subarray(0, cut)), ...decoder.push(prefix.subarray(cut))];
      expect(arrive).toThrow(new ProtocolError(`frame of ${bytes} bytes; the limit is ${LIMIT}`));
    }
  });

  test('is checked for every frame, not only for the first', () => {
    const decoder = new FrameDecoder(LIMIT);
    const stream = Buffer.concat([framed(Buffer.from('fine')), Buffer.from('7fffffff', 'hex')]);
    // The good frame is handed out first; then there is nothing more to be had.
    expect(decoder.push(stream)).toHaveLength(1);
    expect(decoder.fault).toBeInstanceOf(ProtocolError);
    expect(() => decoder.push(Buffer.alloc(0))).toThrow(ProtocolError);
  });

  test('of zero lets only empty frames pass', () => {
    expect(new FrameDecoder(0).push(Buffer.alloc(8))).toEqual([Buffer.alloc(0), Buffer.alloc(0)]);
    expect(() => new FrameDecoder(0).push(Buffer.from([0, 0, 0, 1, 1]))).toThrow(ProtocolError);
  });

  test('can be compared by the code of the error', () => {
    expect(() => new FrameDecoder(LIMIT).push(Buffer.from('GET / HTTP/1.1'))).toThrow(
      expect.objectContaining({ code: 'ZK_PROTOCOL', scope: 'connection' }),
    );
  });
});

describe('a large frame in many parts', () => {
  const MEBIBYTE = 1024 * 1024;

  test.each([
    ['one frame', [4 * MEBIBYTE], 64],
    ['frames whose ends fall inside chunks', [MEBIBYTE, 1_000, MEBIBYTE, 3, MEBIBYTE], 1_460],
    ['many small frames', Array.from({ length: 3_000 }, () => 100), 64],
  ])('costs each byte at most two copies: %s', (_, lengths, chunkBytes) => {
    const stream = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + length, 0));
    let at = 0;
    for (const length of lengths) {
      at = stream.writeInt32BE(length, at);
      stream.fill(length % 251, at, at + length);
      at += length;
    }
    const concat = Buffer.concat;
    let copiedBytes = 0;
    vi.spyOn(Buffer, 'concat').mockImplementation((parts, bytes) => {
      const joined = concat(parts, bytes);
      copiedBytes += joined.byteLength;
      if (copiedBytes > 2 * stream.byteLength) throw new Error('more than two copies of each byte');
      return joined;
    });
    const decoder = new FrameDecoder(4 * MEBIBYTE);
    const frames: Buffer[] = [];
    for (let start = 0; start < stream.byteLength; start += chunkBytes) {
      frames.push(...decoder.push(stream.subarray(start, start + chunkBytes)));
    }
    expect(frames.map((frame) => frame.byteLength)).toEqual(lengths);
    expect(
      frames.every((frame) => frame.equals(Buffer.alloc(frame.byteLength, frame.byteLength % 251))),
    ).toBe(true);
    expect(copiedBytes).toBeGreaterThan(0); // The copies were seen.
    expect(decoder.empty).toBe(true);
  });
});

describe('a frame that never ends', () => {
  const BYTES = 500_000;
  const held = () => {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };

  test('costs about what has arrived of it, also byte by byte', () => {
    const decoder = new FrameDecoder(2 * BYTES);
    const prefix = Buffer.alloc(4);
    prefix.writeInt32BE(BYTES + 1);
    decoder.push(prefix);
    const before = held();
    for (let index = 0; index < BYTES; index++) decoder.push(Buffer.alloc(1, index));
    // Kept one by one they would be 50 MB at least; what this lets pass is garbage that was not collected yet.
    expect(held() - before).toBeLessThan(40_000_000);
    const [frame] = decoder.push(Buffer.alloc(1, BYTES));
    expect(frame!.equals(Buffer.from(Array.from({ length: BYTES + 1 }, (_, index) => index & 0xff)))).toBe(
      true,
    );
  });

  test.each([10, 5_000])('keep nothing of a chunk that is read into again (%i bytes of it)', (partBytes) => {
    const decoder = new FrameDecoder(1 << 20);
    const frame = Buffer.from(Array.from({ length: partBytes + 3 }, (_, index) => index & 0xff));
    const stream = Buffer.concat([Buffer.from([0, 0, frame.length >> 8, frame.length & 0xff]), frame]);
    const shared = Buffer.alloc(stream.length);
    const read = (from: number, to: number) => shared.subarray(0, stream.copy(shared, 0, from, to));
    expect(decoder.push(read(0, partBytes))).toEqual([]);
    shared.fill(0xee);
    expect(decoder.push(read(partBytes, stream.length))).toEqual([frame]);
  });
});
