import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemRandom } from '../base/random.ts';
import { FrameDecoder } from '../protocol/frame-decoder.ts';
import { Connected } from '../protocol/handshake.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { ConnectOptions } from './connect-options.ts';
import type { LinkHandlers, Transport } from './transport.ts';
import { ZooKeeper } from './zookeeper.ts';

/** Grants each session the timeout that it asks for, and answers nothing after that. */
class GrantingServer implements Transport {
  readonly clock = new VirtualClock();
  readonly #timeoutMs: number;
  dialCount = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  dial(_server: unknown, handlers: LinkHandlers) {
    const isFirst = this.dialCount++ === 0;
    const frames = new FrameDecoder(1 << 20);
    this.clock.endOfTick(() => handlers.opened());
    let greeted = !isFirst;
    return {
      write: (bytes: Buffer) => {
        if (greeted || frames.push(bytes).length === 0) return;
        greeted = true;
        this.clock.endOfTick(() => handlers.received(grant(this.#timeoutMs)));
      },
      destroy: () => {},
    };
  }
}

function grant(timeOut: number): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  Connected.write(out, {
    protocolVersion: 0,
    timeOut,
    sessionId: 1n,
    passwd: Buffer.alloc(16),
    readOnly: false,
  });
  out.endFrame(mark);
  return out.take();
}

const anyNumber = fc.oneof(
  fc.double({ noNaN: false }),
  fc.double({ min: -2, max: 2 }),
  fc.integer(),
  fc.integer({ min: -100_000, max: 100_000 }),
  fc.constantFrom(-0, 0, 0.5, 1, Number.MAX_VALUE, Number.MIN_VALUE, Number.NaN, Number.NEGATIVE_INFINITY),
);
const anyValue = fc.oneof(
  { weight: 8, arbitrary: anyNumber },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(undefined, null, '1', 1n, [], {}, true) },
);
const anyLease = fc.record(
  { clockRateTolerance: anyValue, touchLagMs: anyValue },
  { requiredKeys: [] },
) as fc.Arbitrary<NonNullable<ConnectOptions['lease']>>;

describe('the options of a lease', () => {
  test('are refused before anything is sent, or the lease ends before its session less the margin', async () => {
    await fc.assert(
      fc.asyncProperty(anyLease, fc.integer({ min: 100, max: 60_000 }), async (lease, timeoutMs) => {
        const server = new GrantingServer(timeoutMs);
        const { clock } = server;
        const options = {
          clock,
          transport: server,
          random: systemRandom,
          sessionTimeoutMs: timeoutMs,
          lease,
        };
        let zk: ZooKeeper;
        try {
          zk = ZooKeeper.open('a', options);
        } catch (error) {
          expect(error instanceof TypeError || error instanceof RangeError).toBe(true);
          expect((error as Error).message).toMatch(/^lease/);
          expect(server.dialCount).toBe(0);
          return;
        }
        await clock.advance(0);
        const hold = zk.session.hold();
        let endedAtMs = Number.POSITIVE_INFINITY;
        hold.onEnded(() => {
          endedAtMs = clock.nowMs();
        });
        // The heartbeat that a lagging follower may have kept to itself is a fifth of the timeout old at most.
        const latestMs = (timeoutMs * 4) / 5;
        expect(hold.remainingMs()).toBeGreaterThan(0);
        expect(hold.remainingMs()).toBeLessThanOrEqual(latestMs);
        await clock.advance(timeoutMs);
        expect(endedAtMs).toBeLessThanOrEqual(latestMs + 1);
        const closing = zk.close();
        await clock.advance(2 * timeoutMs);
        await closing;
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    [{ clockRateTolerance: -1 }, 'lease.clockRateTolerance: -1 given; a number from 0 to 0.5 is needed'],
    [{ touchLagMs: -60_000 }, 'lease.touchLagMs: -60000 given; an integer from 0 to 3600000 is needed'],
    [{ clockRateTolerance: Number.NaN }, 'lease.clockRateTolerance: NaN given'],
    [{ touchLag: 1 } as object, 'lease: there is no option "touchLag", did you mean touchLagMs?'],
    ['soon' as never, 'lease: the string "soon" given'],
  ])('%j are refused', (lease, message) => {
    expect(() => ZooKeeper.open('a', { lease })).toThrow(message);
  });
});

describe('the sizes of requests and replies', () => {
  test.each([
    [{ requestBytesMax: Number.NaN }, 'requestBytesMax: NaN given'],
    [{ requestBytesMax: -1 }, 'requestBytesMax: -1 given'],
    [{ replyBytesMax: 0 }, 'replyBytesMax: 0 given'],
  ])('%j are refused', (options, message) => {
    expect(() => ZooKeeper.open('a', options)).toThrow(message);
  });
});
