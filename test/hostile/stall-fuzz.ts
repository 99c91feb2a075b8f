import { type Random, seededRandom } from '../../src/base/random.ts';
import type { AttackedServer, BystanderReport } from './attacked-server.ts';
import { dearRequests, encoded, someDear } from './dear-requests.ts';
import { below, fuzzedFrame } from './fuzzed-frames.ts';
import { RawPeer } from './raw-peer.ts';
import type { TurnReport } from './turn-meter.ts';

/** A session that nobody comes back to ends soon, with all it has. */
const SESSION_MS = 2_000;
/** How long a client waits for its answers before it goes. */
const PATIENCE_MS = 400;

/** What came of an attack: what the server's turns cost, and how one that behaves fared. */
export interface StallReport {
  readonly turns: TurnReport;
  readonly bystander: BystanderReport;
  readonly requestCount: number;
  /** Clients that came and went. */
  readonly clientCount: number;
}

/**
 * Clients that come, send what is dear, and malformed frames between, and go: some when they have been answered, some
 * at once, some with a reset. The first ones send each kind of what is dear, so that none is left out.
 */
export async function attack(
  server: AttackedServer,
  options: { readonly seed: number; readonly clients: number; readonly ms: number },
): Promise<StallReport> {
  await server.turns();
  await server.bystander();
  const endMs = performance.now() + options.ms;
  const kinds = Object.values(dearRequests);
  let clientCount = 0;
  let requestCount = 0;
  await Promise.all(
    Array.from({ length: options.clients }, async (_, index) => {
      const random = seededRandom(options.seed * options.clients + index);
      while (performance.now() < endMs) {
        const dear = kinds[clientCount++] ?? someDear(random);
        requestCount += await visit(server, random, dear);
      }
    }),
  );
  return { turns: await server.turns(), bystander: await server.bystander(), requestCount, clientCount };
}

/** One client's life: how many requests it has sent. */
async function visit(
  server: AttackedServer,
  random: Random,
  dear: ReturnType<typeof someDear>,
): Promise<number> {
  await using peer = await RawPeer.connected(server, { timeOut: SESSION_MS });
  let xid = 1;
  for (let rounds = 1 + below(random, 2); rounds > 0; rounds--) {
    const { bytes, lastXid } = encoded(xid === 1 ? dear : someDear(random), random, xid);
    peer.send(bytes);
    xid = lastXid + 1;
    if (below(random, 4) === 0) peer.send(fuzzedFrame(random, xid++).bytes);
  }
  const leaves = below(random, 3);
  if (leaves === 0) {
    // Gone as soon as the server's machine has it all, or as much as it takes.
    await Promise.race([sent(peer), pause(PATIENCE_MS)]);
    peer.socket.resetAndDestroy();
  } else if (leaves === 1) {
    await Promise.race([sent(peer), pause(PATIENCE_MS)]);
  } else {
    await Promise.race([peer.replies(xid - 1).catch(() => {}), pause(PATIENCE_MS)]);
  }
  return xid - 1;
}

function sent({ socket }: RawPeer): Promise<void> {
  return new Promise((resolve) => {
    socket.write('', () => resolve());
    socket.once('close', () => resolve());
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
