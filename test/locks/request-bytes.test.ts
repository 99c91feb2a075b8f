import { describe, expect, test } from 'vitest';
import { Dice } from '../../simulation/scenario/dice.ts';
import { seededRandom } from '../../src/base/random.ts';
import { utf8Bytes } from '../../src/base/utf8-bytes.ts';
import { connect, type Holdfast, type LockLease } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { startTestServer } from '../../src/testing.ts';
import { acls } from '../../src/zookeeper.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { until } from '../support/until.ts';

/**
 * What Holdfast sends as one request, at most: half of what a server accepts if nothing is configured. A multi-lock is one
 * transaction however long it is.
 */
const REQUEST_BYTES_MAX = 512 * 1_024;
const MULTI_BYTES_MAX = 1_048_575;
const SCENES = process.env['HOLDFAST_REQUEST_BYTES_SCENES']
  ? Number(process.env['HOLDFAST_REQUEST_BYTES_SCENES'])
  : 15;
/** Among these are those that show what has been wrong before. */
const SEEDS = [70, ...Array.from({ length: SCENES }, (_, index) => 20 + index)];
const KINDS = ['readers', 'mutex', 'permits', 'many', 'multi'] as const;

/** One drawn process: where its locks are, how long the names are, how many of its tasks follow each other. */
interface Scene {
  readonly kind: (typeof KINDS)[number];
  readonly count: number;
  readonly nameBytes: number;
  readonly rootBytes: number;
  readonly chrootBytes: number;
  readonly letter: string;
  readonly closed: boolean;
  readonly reasonBytes: number;
  /** Those who wait are of another process. */
  readonly apart: boolean;
  /** The connection of those who wait is lost before the release; a holder on it hands over by the server, not in memory. */
  readonly reconnects: boolean;
}

function drawScene(seed: number): Scene {
  const dice = new Dice(seededRandom(seed * 7_919));
  const bytes = () => (dice.chance(0.5) ? 1_024 : dice.whole(8, 1_024));
  const kind = KINDS[seed % KINDS.length]!;
  // Around what is told in memory (256), checked at once (128), gathered (64 writes, 300 watches), and far above.
  const many = () => dice.pick([64, 127, 129, 255, 257, 300, dice.whole(1, 700)]);
  const count = kind === 'multi' ? dice.pick([64, 256, dice.whole(2, 256)]) : many();
  return {
    kind,
    count,
    nameBytes: kind === 'multi' ? Math.min(1_024, Math.floor((64 * 1_024) / count)) : bytes(),
    rootBytes: bytes(),
    chrootBytes: bytes(),
    letter: dice.pick(['n', 'é', '鎖']),
    closed: dice.chance(0.3),
    reasonBytes: dice.pick([0, 200, dice.whole(0, 1_024)]),
    apart: dice.chance(kind === 'many' ? 0.8 : 0.4),
    reconnects: dice.chance(0.5),
  };
}

/** Exactly so many bytes of UTF-8, each text with its own beginning. */
function sized(bytes: number, beginning: string, letter: string): string {
  const long = beginning + letter.repeat(Math.floor((bytes - utf8Bytes(beginning)) / utf8Bytes(letter)));
  return long + 'x'.repeat(bytes - utf8Bytes(long));
}

/** Everybody waits; the first lets go; all get through, some by way of a lost connection. */
async function live(
  holder: Holdfast,
  waiter: Holdfast,
  scene: Scene,
  reconnect: () => void,
): Promise<number> {
  const { kind, count, nameBytes, letter } = scene;
  const options = { reason: 'r'.repeat(scene.reasonBytes) };
  const name = (index: number) => sized(nameBytes, `${index}-`, letter);
  let waitingCount = 0;
  const heard = (lock: { on(event: 'waiting', listener: () => void): unknown }) =>
    lock.on('waiting', () => waitingCount++);
  const pass = async (waits: readonly Promise<LockLease>[], first: readonly LockLease[]) => {
    await until('all wait', () => waitingCount === waits.length, 20_000);
    reconnect();
    await waiter.zk.sync();
    await Promise.all(first.map((lease) => lease.release()));
    await Promise.all(waits.map(async (wait) => (await wait).release()));
    return waits.length;
  };
  const times = Array.from({ length: count }, (_, index) => index);
  switch (kind) {
    case 'readers': {
      const { read } = waiter.readWriteLock(name(0));
      const held = await holder.readWriteLock(name(0)).write.acquire(options);
      heard(read);
      return pass(
        times.map(() => read.acquire(options)),
        [held],
      );
    }
    case 'mutex': {
      const lock = waiter.mutex(name(0));
      const held = await holder.mutex(name(0)).acquire(options);
      heard(lock);
      return pass(
        times.map(() => lock.acquire(options)),
        [held],
      );
    }
    case 'permits': {
      const lock = waiter.semaphore(name(0), { permits: 3 });
      const leases = await Promise.all(times.map(async () => (await lock.acquire(options)).release()));
      return leases.length;
    }
    case 'many': {
      const locks = times.map((index) => waiter.mutex(name(index)));
      const held = await Promise.all(times.map((index) => holder.mutex(name(index)).acquire(options)));
      for (const lock of locks) heard(lock);
      return pass(
        locks.map((lock) => lock.acquire(options)),
        held,
      );
    }
    case 'multi': {
      const held = await holder.multiLock(times.map(name)).acquire(options);
      const waiting = waiter.multiLock(times.map(name)).acquire(options);
      reconnect();
      await held.release();
      await (await waiting).release();
      return 1;
    }
  }
}

describe('no request is longer than a server accepts', () => {
  for (const seed of new Set(SEEDS)) {
    const scene = drawScene(seed);
    const { kind, count, nameBytes, rootBytes, chrootBytes } = scene;
    test(`seed ${seed}: ${kind}, ${count}; ${nameBytes} bytes in ${rootBytes} in ${chrootBytes}`, {
      timeout: 60_000,
    }, async () => {
      await using server = await startTestServer();
      const chroot = sized(scene.chrootBytes, '/', scene.letter);
      {
        await using admin = await connect({ servers: server.connectString });
        await admin.zk.create(chroot, '');
      }
      const transports = [new CountingTransport(), new CountingTransport()] as const;
      const connected = (transport: CountingTransport, neighbours: Neighbours) =>
        connect({
          servers: `${server.connectString}${chroot}`,
          root: sized(scene.rootBytes, '/', scene.letter),
          transport,
          neighbours,
          auth: [{ scheme: 'digest', auth: 'team:secret' }],
          ...(scene.closed && { acl: acls.creatorOnly, folderAcl: acls.creatorOnly }),
          sessionTimeoutMs: 30_000,
        });
      const process = new Neighbours();
      await using holder = await connected(transports[0], process);
      await using other = await connected(transports[1], new Neighbours());
      const waiter = scene.apart ? other : holder;
      const served = await live(holder, waiter, scene, () => {
        if (scene.reconnects) server.dropConnection(waiter.zk.session.id);
      });
      expect(served).toBeGreaterThan(0);
      const longest = Math.max(...transports.map(({ largestRequestBytes }) => largestRequestBytes));
      expect(longest).toBeLessThanOrEqual(kind === 'multi' ? MULTI_BYTES_MAX : REQUEST_BYTES_MAX);
    });
  }
});

test('a multi-lock that would be longer is refused before anything is sent, and leaves nothing behind', async () => {
  await using server = await startTestServer();
  const transport = new CountingTransport();
  await using holdfast = await connect({
    servers: server.connectString,
    root: sized(1_024, '/', 'r'),
    labels: { team: 'x'.repeat(2_000) },
    transport,
  });
  const lock = holdfast.multiLock(Array.from({ length: 256 }, (_, index) => sized(256, `${index}-`, 'n')));
  await expect(lock.acquire({ reason: 'r'.repeat(1_024) })).rejects.toThrow(RangeError);
  expect(transport.largestRequestBytes).toBeLessThanOrEqual(MULTI_BYTES_MAX);
  await (await holdfast.mutex('a').acquire()).release();
  expect(await holdfast.zk.ephemerals()).toEqual([]);
});
