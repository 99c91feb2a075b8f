import { describe, expect, test } from 'vitest';
import { type Random, seededRandom } from '../base/random.ts';
import { type CapturedFrame, capturedFrames } from './captured-frames.test-data.ts';
import { ProtocolError } from './errors.ts';
import { FrameDecoder } from './frame-decoder.ts';
import { Connect, Connected } from './handshake.ts';
import { JuteReader } from './jute-reader.ts';
import { type Operation, operationOf, operations } from './operations.ts';
import { ReplyHeader, RequestHeader, WatcherEvent } from './records.ts';

/**
 * The contract of every decoder: whatever the bytes, it returns a value or throws `ProtocolError`. It never
 * throws anything else, never reads more often than there are bytes, and never makes a value much larger
 * than the bytes it was made of.
 *
 * HOLDFAST_FUZZ_EXECUTIONS makes the run longer; HOLDFAST_FUZZ_SEED makes it another one. Every input has a
 * seed of its own, which a failure prints: with it as HOLDFAST_FUZZ_SEED, and one execution, it is replayed.
 */
const EXECUTIONS = Number(process.env['HOLDFAST_FUZZ_EXECUTIONS'] ?? 300_000);
const SEED = Number(process.env['HOLDFAST_FUZZ_SEED'] ?? 1);
const MEBIBYTE = 1024 * 1024;
const RSS_GROWTH_BYTES_MAX = 50 * MEBIBYTE;

/** A reader that tells a loop that does not end from one that does: each read takes a byte at least. */
class CountingReader extends JuteReader {
  #readsLeft: number;

  constructor(bytes: Buffer) {
    super(bytes);
    this.#readsLeft = bytes.byteLength + 1;
  }

  override int(): number {
    this.#count();
    return super.int();
  }

  override long(): bigint {
    this.#count();
    return super.long();
  }

  override boolean(): boolean {
    this.#count();
    return super.boolean();
  }

  #count(): void {
    if (this.#readsLeft-- <= 0) throw new Error('more reads than bytes');
  }
}

/** Something that bytes from the network reach. */
interface Target {
  readonly name: string;
  decode(bytes: Buffer, random: Random): unknown;
  returnedCount: number;
  refusedCount: number;
}
const target = (name: string, decode: Target['decode']): Target => ({
  name,
  decode,
  returnedCount: 0,
  refusedCount: 0,
});

const operationTargets = Object.values<Operation>(operations).flatMap((operation) => [
  target(`${operation.name}, request`, (bytes) => {
    const input = new CountingReader(bytes);
    return [RequestHeader.read(input), operation.request.read(input)];
  }),
  target(`${operation.name}, reply`, (bytes) => {
    const input = new CountingReader(bytes);
    return [ReplyHeader.read(input), operation.reply.read(input)];
  }),
]);
const targets = [
  ...operationTargets,
  target('request, by its number', (bytes) => {
    const input = new CountingReader(bytes);
    const header = RequestHeader.read(input);
    return [header, operationOf(header.type)?.request.read(input)];
  }),
  target('event', (bytes) => {
    const input = new CountingReader(bytes);
    return [ReplyHeader.read(input), WatcherEvent.read(input)];
  }),
  target('Connect', (bytes) => Connect.read(new CountingReader(bytes))),
  target('Connected', (bytes) => Connected.read(new CountingReader(bytes))),
  target('ReplyHeader', (bytes) => ReplyHeader.read(new CountingReader(bytes))),
  target('RequestHeader', (bytes) => RequestHeader.read(new CountingReader(bytes))),
];
const frames = target('FrameDecoder', (bytes, random) => {
  const decoder = new FrameDecoder(MEBIBYTE);
  const found: Buffer[] = [];
  for (let start = 0; start < bytes.byteLength; ) {
    const end = Math.min(bytes.byteLength, start + 1 + below(random, 40));
    found.push(...decoder.push(bytes.subarray(start, end)));
    start = end;
  }
  return found;
});

/** What each captured frame is made of: where a small mutation gets furthest. */
const ownRecords = new Map(
  capturedFrames.map((frame) => [
    frame,
    target(`records of: ${frame.name}`, (bytes) => {
      const input = new CountingReader(bytes);
      return frame.parts.map(({ codec }) => codec.read(input));
    }),
  ]),
);

const below = (random: Random, limit: number) => random.u32() % limit;
const pick = <T>(random: Random, items: readonly T[]): T => items[below(random, items.length)]!;

/** Where a frame has four bytes that could be a length or a count: the places worth lying at. */
const lengthOffsets = new Map(
  capturedFrames.map(({ bytes }) => {
    const offsets: number[] = [];
    for (let at = 0; at + 4 <= bytes.byteLength; at++) {
      const claimed = bytes.readInt32BE(at);
      if (claimed >= -1 && claimed <= bytes.byteLength - at) offsets.push(at);
    }
    return [bytes, offsets] as const;
  }),
);

type Mutation = (bytes: Buffer, random: Random, original: Buffer) => Buffer;
const mutations: Mutation[] = [
  function flipBits(bytes, random) {
    for (let count = 1 + below(random, 4); count > 0; count--) {
      const at = below(random, bytes.byteLength);
      bytes[at] = bytes[at]! ^ (1 << below(random, 8));
    }
    return bytes;
  },
  function lieAboutLength(bytes, random, original) {
    const at = pick(random, lengthOffsets.get(original)!);
    if (at + 4 > bytes.byteLength) return bytes;
    const length = bytes.readInt32BE(at);
    const lies = [
      0,
      -1,
      1,
      2,
      (length - 1) | 0,
      (length + 1) | 0,
      0x7fffffff,
      2 ** 20 - 1,
      2 ** 20 + 1,
      1e9,
      -2,
    ];
    bytes.writeInt32BE(pick(random, lies), at);
    return bytes;
  },
  function cutShort(bytes, random) {
    return bytes.subarray(0, 1 + below(random, bytes.byteLength));
  },
  function splice(bytes, random) {
    const other = pick(random, capturedFrames).bytes;
    return Buffer.concat([
      bytes.subarray(0, below(random, bytes.byteLength + 1)),
      other.subarray(below(random, other.byteLength)),
    ]);
  },
  function repeatPart(bytes, random) {
    const start = below(random, bytes.byteLength);
    return Buffer.concat([bytes, bytes.subarray(start, start + below(random, 64))]);
  },
  function overwrite(bytes, random) {
    const noise = random.bytes(1 + below(random, 12));
    bytes.set(
      noise.subarray(0, bytes.byteLength),
      below(random, Math.max(1, bytes.byteLength - noise.length)),
    );
    return bytes;
  },
];

function mutated({ bytes: original }: CapturedFrame, random: Random): Buffer {
  let bytes: Buffer = Buffer.from(original);
  for (let count = below(random, 4); count > 0; count--)
    bytes = pick(random, mutations)(bytes, random, original);
  return bytes;
}

function noise(random: Random): Buffer {
  const bytes = Buffer.from(random.bytes(1 + below(random, 96)));
  // Uniform bytes are absurd lengths; with small ones in between, some of it is taken for a record.
  for (let at = below(random, 4); at + 4 <= bytes.byteLength && random.u32() % 8 > 0; at += 4) {
    bytes.writeInt32BE(below(random, 6) - 1, at);
  }
  return bytes;
}

/** About the bytes that a decoded value keeps alive: what it holds, not what engines add to it. */
function weightOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (value instanceof Uint8Array) return value.byteLength;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + 4 + weightOf(item), 0);
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).reduce((sum, [key, item]) => sum + (isTag(key) ? 0 : weightOf(item)), 0);
  }
  return 0;
}
/** Words that the decoder adds of its own. */
const isTag = (key: string) => key === 'op' || key === 'kind';

function execute(subject: Target, bytes: Buffer, random: Random, inputSeed: number): void {
  try {
    const value = subject.decode(bytes, random);
    subject.returnedCount++;
    if (inputSeed % 16 === 0 && weightOf(value) > 2 * bytes.byteLength + 64)
      throw new Error('a bloated value');
  } catch (error) {
    if (error instanceof ProtocolError) {
      subject.refusedCount++;
      return;
    }
    const replay = `HOLDFAST_FUZZ_SEED=${inputSeed} HOLDFAST_FUZZ_EXECUTIONS=1`;
    throw new Error(`${subject.name}, replay with ${replay}, bytes ${bytes.toString('hex')}`, {
      cause: error,
    });
  }
}

const TARGETS_PER_INPUT = 12;

/** Feeds one input to the frame decoder and, without its prefix, to others; returns how many executions it was. */
function fuzzOnce(inputSeed: number): number {
  const random = seededRandom(inputSeed);
  const captured = pick(random, capturedFrames);
  const stream = inputSeed % 3 === 0 ? noise(random) : mutated(captured, random);
  const payload = stream.subarray(Math.min(4, stream.byteLength));
  execute(frames, stream, random, inputSeed);
  execute(ownRecords.get(captured)!, payload, random, inputSeed);
  const first = random.u32();
  for (let index = 0; index < TARGETS_PER_INPUT; index++) {
    execute(targets[(first + index) % targets.length]!, payload, random, inputSeed);
  }
  return 2 + TARGETS_PER_INPUT;
}

describe('decoders', () => {
  test(
    `return or throw ProtocolError for ${EXECUTIONS} hostile inputs from seed ${SEED} on`,
    () => {
      const { stackTraceLimit } = Error;
      // Stacks take most of the time of a refusal, and only a replay needs them.
      if (EXECUTIONS > 1) Error.stackTraceLimit = 0;
      try {
        const startRssBytes = process.memoryUsage.rss();
        let executionCount = 0;
        for (let inputSeed = SEED; executionCount < EXECUTIONS; inputSeed++) {
          executionCount += fuzzOnce(inputSeed);
          if (inputSeed % 64 !== 0) continue;
          expect(process.memoryUsage.rss() - startRssBytes).toBeLessThan(RSS_GROWTH_BYTES_MAX);
        }
      } finally {
        Error.stackTraceLimit = stackTraceLimit;
      }
      if (EXECUTIONS < 100_000) return;
      // Green would mean nothing if no input were taken, or if none were refused.
      const all = [frames, ...targets, ...ownRecords.values()];
      expect(all.filter(({ returnedCount }) => returnedCount === 0).map(({ name }) => name)).toEqual([]);
      expect(all.filter(({ refusedCount }) => refusedCount === 0).map(({ name }) => name)).toEqual([]);
    },
    20_000 + EXECUTIONS / 10,
  );

  test('are told apart from one that breaks the contract', () => {
    const random = seededRandom(SEED);
    const bytes = Buffer.alloc(8);
    const broken: [string, Target['decode']][] = [
      ['a foreign error', (input) => input.readInt32BE(99)],
      [
        'more reads than bytes',
        (input) => {
          const reader = new CountingReader(input);
          for (;;) {
            try {
              reader.int();
            } catch (error) {
              if (!(error instanceof ProtocolError)) throw error;
            }
          }
        },
      ],
      ['a bloated value', () => new Array(1_000).fill(0)],
    ];
    for (const [name, decode] of broken) {
      expect(() => execute(target(name, decode), bytes, random, 0)).toThrow(
        `${name}, replay with HOLDFAST_FUZZ_SEED=0 HOLDFAST_FUZZ_EXECUTIONS=1, bytes 0000000000000000`,
      );
    }
  });
});
