import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/base/random.ts';
import { JuteWriter } from '../../src/protocol/jute-writer.ts';
import {
  CorruptLogError,
  decodeLog,
  encodeBatch,
  encodeLogHeader,
  LOG_HEADER_BYTES,
} from '../../src/server/storage/log-format.ts';
import { OPEN_ACL, open } from '../../src/server/storage/store.test-data.ts';
import { SimulatedFolder } from '../environment/simulated-folder.ts';

const FIRST_LOG = 'log.0000000100000000';

/** A folder with the log of `count` transactions, each a batch of its own, and the state after each. */
async function logged(count: number, logBytesMax?: number) {
  const folder = new SimulatedFolder();
  const { store, owner } = await open(folder, logBytesMax);
  const random = seededRandom(count);
  const pictures = [owner.picture()];
  const sizes = [LOG_HEADER_BYTES];
  for (let index = 0; index < count; index++) {
    store.append(owner.perform(owner.next(random)));
    await store.settled();
    pictures.push(owner.picture());
    sizes.push(LOG_HEADER_BYTES + store.statistics.logBytes);
  }
  return { folder, pictures, sizes };
}

const namesOf = (folder: SimulatedFolder, kind: string) =>
  [...folder.files.keys()].filter((name) => name.startsWith(`${kind}.`)).sort();

function flip(folder: SimulatedFolder, name: string, at: number): SimulatedFolder {
  const damaged = folder.copy();
  damaged.files.get(name)!.content[at]! ^= 0x40;
  return damaged;
}

describe('a log', { timeout: 60_000 }, () => {
  test('gives back what was put into it, and goes on with higher numbers', async () => {
    const { folder, pictures } = await logged(50);
    const { owner } = await open(folder);
    expect(owner.picture()).toBe(pictures.at(-1));
    expect([...folder.files.keys()].sort()).toEqual([FIRST_LOG, 'log.0000000200000000']);
  });

  test('cut off at any byte gives back every transaction that is wholly before it', async () => {
    const { folder, pictures, sizes } = await logged(15);
    const { content } = folder.files.get(FIRST_LOG)!;
    expect(content.byteLength).toBeGreaterThan(sizes.at(-1)! + 1_000); // Zeros ahead.
    for (let bytes = 0; bytes <= content.byteLength; bytes += bytes < sizes.at(-1)! + 50 ? 1 : 997) {
      const damaged = folder.copy();
      await damaged.truncate(FIRST_LOG, bytes);
      const { owner } = await open(damaged);
      const whole = sizes.filter((size) => size <= bytes).length - 1;
      expect(owner.picture(), `cut at ${bytes}`).toBe(pictures[Math.max(0, whole)]);
    }
  });

  test('with any byte flipped is refused, or gives back everything before the damaged end', async () => {
    const { folder, pictures, sizes } = await logged(15);
    const lastBatchAt = sizes.at(-2)!;
    for (let at = 0; at < sizes.at(-1)!; at++) {
      const opening = open(flip(folder, FIRST_LOG, at));
      if (at < lastBatchAt) {
        await expect(opening, `flipped at ${at}`).rejects.toBeInstanceOf(CorruptLogError);
      } else {
        expect((await opening).owner.picture(), `flipped at ${at}`).toBe(pictures.at(-2));
      }
    }
    for (let ahead = 0; ahead < 1_000; ahead += 7) {
      const { owner } = await open(flip(folder, FIRST_LOG, sizes.at(-1)! + ahead));
      expect(owner.picture(), `flipped ${ahead} bytes behind its end`).toBe(pictures.at(-1));
    }
  });

  test('names the file and the offset of the damage', async () => {
    const { folder, sizes } = await logged(20);
    await expect(open(flip(folder, FIRST_LOG, sizes[5]! + 20))).rejects.toMatchObject({
      code: 'HOLDFAST_CORRUPT_LOG',
      file: FIRST_LOG,
      offset: sizes[5],
      message: `${FIRST_LOG} is damaged at byte ${sizes[5]}: there is a good batch behind it, at byte ${sizes[6]}`,
    });
  });

  test('that is damaged at its end is refused if another goes on from there', async () => {
    const { folder, sizes } = await logged(20);
    await open(folder);
    for (let at = sizes.at(-2)!; at < sizes.at(-1)!; at++) {
      await expect(open(flip(folder, FIRST_LOG, at)), `flipped at ${at}`).rejects.toMatchObject({
        file: FIRST_LOG,
        offset: sizes.at(-2),
      });
    }
  });

  test('that is missing between others is missed', async () => {
    const { folder } = await logged(20);
    const second = await open(folder);
    second.store.append(second.owner.perform(second.owner.next(seededRandom(1))));
    await second.store.settled();
    await open(folder);
    await folder.remove('log.0000000200000000');
    await expect(open(folder)).rejects.toMatchObject({ file: 'log.0000000300000000', offset: 0 });
  });

  test('takes no bytes that a client wrote for a batch of its own', () => {
    const moment = { zxid: 1n, timeMs: 1 };
    const withForged = (forgedSeed: number) => {
      const data = encodeBatch(
        [{ ...moment, kind: 'close-session', sessionId: 1n, changes: [] }],
        forgedSeed,
        new JuteWriter(),
      ).bytes;
      const changes = [{ kind: 'create', path: '/a', data, acl: OPEN_ACL, owner: 0n }] as const;
      const header = { base: 0n, seed: 1 };
      const batch = encodeBatch([{ ...moment, kind: 'tree', changes }], header.seed, new JuteWriter()).bytes;
      batch[0]! ^= 1; // Torn by a power cut.
      const content = Buffer.concat([encodeLogHeader(header), batch]);
      return () => decodeLog('log', content, header, () => {});
    };
    expect(withForged(2)()).toBe(LOG_HEADER_BYTES);
    // With the seed, which no client knows, it would be one.
    expect(withForged(1)).toThrow(CorruptLogError);
  });

  test('promises nothing before it is on disk, and shares one sync between the writes of a tick', async () => {
    const folder = new SimulatedFolder();
    const { store, owner } = await open(folder);
    const random = seededRandom(1);
    const callsBefore = folder.calls.length;
    for (let count = 0; count < 10; count++) store.append(owner.perform(owner.next(random)));
    expect(owner.durableZxid).toBe(0n);
    await store.settled();
    expect(owner.durableZxid).toBe((1n << 32n) + 10n);
    expect(folder.calls.slice(callsBefore).map(({ kind }) => kind)).toEqual(['write', 'sync']);
  });

  test('is given up where it is when the store is closed', async () => {
    const folder = new SimulatedFolder();
    const { store, owner } = await open(folder, 300);
    const random = seededRandom(1);
    for (let count = 0; count < 30; count++) store.append(owner.perform(owner.next(random)));
    await store.close();
    expect(owner.durableZxid).toBe([...owner.history.keys()].at(-1));
    expect((await open(folder)).owner.picture()).toBe(owner.picture());
  });
});

describe('a snapshot', { timeout: 60_000 }, () => {
  test('replaces the logs before the one before it, and gives back the same', async () => {
    const { folder, pictures } = await logged(200, 2_000);
    expect(namesOf(folder, 'snapshot')).toHaveLength(2);
    expect(namesOf(folder, 'log')).toHaveLength(2);
    expect((await open(folder)).owner.picture()).toBe(pictures.at(-1));
  });

  test('and the logs after it give back what all logs from the beginning do', async () => {
    const folder = new SimulatedFolder();
    folder.remove = async () => {};
    const { store, owner } = await open(folder, 3_000);
    const random = seededRandom(3);
    for (let index = 0; index < 300; index++) {
      store.append(owner.perform(owner.next(random)));
      if (index % 7 === 0) await store.settled();
    }
    await store.settled();
    const withoutSnapshots = folder.copy();
    const snapshots = namesOf(folder, 'snapshot');
    expect(snapshots.length).toBeGreaterThan(5);
    for (const name of snapshots) await withoutSnapshots.remove(name);
    expect((await open(folder)).owner.picture()).toBe(owner.picture());
    expect((await open(withoutSnapshots)).owner.picture()).toBe(owner.picture());
  });

  test('that is damaged anywhere is left out: the one before it and the logs have the same', async () => {
    const { folder, pictures } = await logged(20, 500);
    const name = namesOf(folder, 'snapshot').at(-1)!;
    for (let at = 0; at < folder.files.get(name)!.content.byteLength; at++) {
      const damaged = flip(folder, name, at);
      expect((await open(damaged)).owner.picture(), `flipped at ${at}`).toBe(pictures.at(-1));
      expect(namesOf(damaged, 'damaged')).toEqual([`damaged.${name}`]);
    }
  });

  test('cut off anywhere is left out as well', async () => {
    const { folder, pictures } = await logged(20, 500);
    const name = namesOf(folder, 'snapshot').at(-1)!;
    for (let bytes = 0; bytes < folder.files.get(name)!.content.byteLength; bytes += 7) {
      const damaged = folder.copy();
      await damaged.truncate(name, bytes);
      expect((await open(damaged)).owner.picture(), `cut at ${bytes}`).toBe(pictures.at(-1));
    }
  });

  test('that is damaged is refused, naming the place, if the logs do not reach back behind it', async () => {
    const { folder } = await logged(20, 500);
    const [older, newer] = namesOf(folder, 'snapshot') as [string, string];
    await folder.remove(older);
    const { content } = folder.files.get(newer)!;
    for (let at = 0; at < content.byteLength; at += 3) {
      const damaged = flip(folder, newer, at);
      await expect(open(damaged), `flipped at ${at}`).rejects.toMatchObject({
        code: 'HOLDFAST_CORRUPT_LOG',
        file: newer,
      });
    }
  });

  test('that is damaged is refused if the log that was begun with it is gone', async () => {
    const { folder } = await logged(20, 500);
    const name = namesOf(folder, 'snapshot').at(-1)!;
    await folder.remove(namesOf(folder, 'log').at(-1)!);
    await expect(open(flip(folder, name, 50))).rejects.toBeInstanceOf(CorruptLogError);
  });
});

describe('a server that is killed again and again before its snapshot is done', () => {
  /** What many lives leave behind, of which none could finish a snapshot. */
  async function killedOften(lives: number, transactionsPerLife: number) {
    let folder = new SimulatedFolder();
    const random = seededRandom(3);
    let picture = '';
    for (let life = 0; life < lives; life++) {
      folder.pause = async ({ kind, name }) => {
        if (kind === 'write' && name === 'snapshot.tmp') await new Promise(() => {});
      };
      const { store, owner } = await open(folder, 2_000);
      for (let count = 0; count < transactionsPerLife; count++) {
        const { zxid } = owner;
        store.append(owner.perform(owner.next(random)));
        await until(() => owner.durableZxid > zxid);
      }
      picture = owner.picture();
      folder = folder.afterKill();
    }
    return { folder, picture };
  }

  test('has a snapshot once it is let, and then no more logs than it needs', async () => {
    const { folder, picture } = await killedOften(50, 12);
    expect(namesOf(folder, 'log').length).toBeGreaterThan(50);
    expect(namesOf(folder, 'snapshot').filter((name) => !name.endsWith('tmp'))).toEqual([]);
    for (let start = 1; start <= 3; start++) {
      const { store, owner } = await open(folder, 2_000);
      await store.settled();
      expect(owner.picture()).toBe(picture);
      expect(namesOf(folder, 'snapshot').length).toBeGreaterThan(0);
      await store.close();
    }
    expect(namesOf(folder, 'log').length).toBeLessThan(8);
  });

  test('writes nothing of the kind after a start whose logs are short', async () => {
    const { folder } = await logged(20);
    const { store } = await open(folder);
    await store.settled();
    expect(namesOf(folder, 'snapshot')).toEqual([]);
  });
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
