import { describe, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { seededRandom } from '../../base/random.ts';
import { SimulatedFolder } from '../../testing/simulated-folder.ts';
import { type DataTree, statOf } from '../data-tree.ts';
import type { Transaction } from '../transaction.ts';
import { CorruptLogError } from './log-format.ts';
import type { SavedSession } from './snapshot-format.ts';
import { type Recovered, Store, type StoreOwner } from './store.ts';

const OPEN_ACL = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

/** A server's worth of state, and what it has been promised. */
class Owner implements StoreOwner {
  readonly tree: DataTree;
  readonly sessions: Map<bigint, SavedSession>;
  zxid: bigint;
  /** The first number this life may use. */
  readonly nextZxid: bigint;
  durableZxid = 0n;
  failure: Error | undefined;

  constructor({ tree, sessions, zxid, usedZxid }: Recovered) {
    this.nextZxid = (((usedZxid >> 32n) + 1n) << 32n) + 1n;
    this.tree = tree;
    this.sessions = new Map(sessions);
    this.zxid = zxid;
  }

  durable(zxid: bigint): void {
    this.durableZxid = zxid;
  }
  storeFailed(error: Error): void {
    this.failure = error;
  }
  state() {
    const nodes = [...this.tree.entries()].map(([path, node]) => [path, { ...node }] as const);
    return { zxid: this.zxid, sessions: [...this.sessions.values()], nodes };
  }

  perform(transaction: Transaction): Transaction {
    this.zxid = transaction.zxid;
    if (transaction.kind === 'open-session') {
      const { sessionId: id, password, timeoutMs } = transaction;
      this.sessions.set(id, { id, password, timeoutMs });
    } else {
      if (transaction.kind === 'close-session') this.sessions.delete(transaction.sessionId);
      for (const change of transaction.changes) this.tree.apply(change, transaction);
    }
    return transaction;
  }
}

/** Mixed transactions, each of a kind that follows from the ones before. */
function* traffic(from: bigint): Generator<Transaction> {
  const life = from >> 32n;
  for (let index = 0, zxid = from; ; index++) {
    const moment = { zxid: zxid++, timeMs: 1_000 + index };
    const session = BigInt(index - (index % 5)) + (life << 20n) + (1n << 56n);
    const path = `/n-${life}-${index - (index % 5)}`;
    switch (index % 5) {
      case 0:
        yield {
          ...moment,
          kind: 'open-session',
          sessionId: session,
          password: Buffer.alloc(16, index),
          timeoutMs: 4_000,
        };
        break;
      case 1: {
        const data = index % 2 === 0 ? null : Buffer.alloc(index % 90, 'x');
        const create = { kind: 'create', data, acl: OPEN_ACL } as const;
        const changes = [
          { ...create, path, owner: 0n },
          { ...create, path: `${path}-e`, owner: session },
        ];
        yield { ...moment, kind: 'tree', changes };
        break;
      }
      case 2:
        yield {
          ...moment,
          kind: 'tree',
          changes: [{ kind: 'set-data', path, data: Buffer.from('né'), version: 1 }],
        };
        break;
      case 3:
        yield { ...moment, kind: 'tree', changes: [{ kind: 'set-acl', path, acl: OPEN_ACL, aversion: 1 }] };
        break;
      default:
        yield {
          ...moment,
          kind: 'close-session',
          sessionId: session,
          changes: [{ kind: 'delete', path: `${path}-e` }],
        };
    }
  }
}

const picture = ({ tree, sessions, zxid }: Pick<Owner, 'tree' | 'sessions' | 'zxid'>) => ({
  zxid,
  sessions: [...sessions.values()].sort((a, b) => Number(a.id - b.id)),
  nodes: [...tree.entries()]
    .map(([path, node]) => ({
      path,
      data: node.data && Buffer.from(node.data),
      acl: node.acl,
      stat: statOf(node),
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1)),
});

async function open(folder: SimulatedFolder, logBytesMax = 1 << 20) {
  const { store, recovered } = await Store.open(folder, {
    clock: systemClock,
    log: silentLog,
    logBytesMax,
    firstZxid: (last) => ((last >> 32n) + 1n) << 32n,
  });
  const owner = new Owner(recovered);
  store.serve(owner);
  return { store, owner };
}

/** A folder with the log of `count` transactions, and the state after each. */
async function logged(count: number) {
  const folder = new SimulatedFolder();
  const { store, owner } = await open(folder);
  const pictures = [picture(owner)];
  const sizes: number[] = [];
  const [name] = [...folder.files.keys()];
  for (const transaction of traffic((1n << 32n) + 1n)) {
    sizes.push(folder.files.get(name!)!.content.byteLength);
    if (pictures.length > count) break;
    store.append(owner.perform(transaction));
    await store.close();
    pictures.push(picture(owner));
  }
  return { folder, name: name!, pictures, sizes };
}

describe('a log', () => {
  test('gives back what was put into it, and goes on with higher numbers', async () => {
    const { folder, pictures } = await logged(50);
    const { owner } = await open(folder);
    expect(picture(owner)).toEqual(pictures.at(-1));
    const names = [...folder.files.keys()].sort();
    expect(names).toEqual(['log.0000000100000000', 'log.0000000200000000']);
  });

  test('cut off at any byte gives back every transaction that is wholly before it', async () => {
    const { folder, name, pictures, sizes } = await logged(20);
    const { content } = folder.files.get(name)!;
    for (let bytes = 0; bytes <= content.byteLength; bytes++) {
      const damaged = folder.copy();
      await damaged.truncate(name, bytes);
      const { owner } = await open(damaged);
      const whole = sizes.filter((size) => size <= bytes).length - 1;
      expect(picture(owner), `cut at ${bytes}`).toEqual(pictures[Math.max(0, whole)]);
    }
  });

  test('with any byte flipped is refused, or gives back everything before the damaged end', async () => {
    const { folder, name, pictures, sizes } = await logged(20);
    const { content } = folder.files.get(name)!;
    const lastRecordAt = sizes.at(-2)!;
    for (let at = 0; at < content.byteLength; at++) {
      const damaged = folder.copy();
      damaged.files.get(name)!.content[at]! ^= 0x40;
      const opening = open(damaged);
      if (at < lastRecordAt) {
        await expect(opening, `flipped at ${at}`).rejects.toBeInstanceOf(CorruptLogError);
      } else {
        expect(picture((await opening).owner), `flipped at ${at}`).toEqual(pictures.at(-2));
      }
    }
  });

  test('names the file and the offset of the damage', async () => {
    const { folder, name, sizes } = await logged(20);
    folder.files.get(name)!.content[sizes[5]! + 20]! ^= 1;
    await expect(open(folder)).rejects.toMatchObject({
      file: name,
      offset: sizes[5],
      message: expect.stringContaining(`${name} is damaged at byte ${sizes[5]}`),
    });
  });

  test('promises nothing before it is on disk, and shares one sync between the writes of a tick', async () => {
    const folder = new SimulatedFolder();
    const { store, owner } = await open(folder);
    const [name] = [...folder.files.keys()];
    const transactions = traffic((1n << 32n) + 1n);
    for (let count = 0; count < 10; count++) store.append(owner.perform(transactions.next().value!));
    expect(owner.durableZxid).toBe(0n);
    await store.close();
    expect(owner.durableZxid).toBe((1n << 32n) + 10n);
    const file = folder.files.get(name!)!;
    expect(file.durableBytes).toBe(file.content.byteLength);
  });

  test.each(['writeError', 'syncError'] as const)(
    'that fails (%s) says so and promises nothing more',
    async (fault) => {
      const folder = new SimulatedFolder();
      const { store, owner } = await open(folder);
      const transactions = traffic((1n << 32n) + 1n);
      folder[fault] = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      store.append(owner.perform(transactions.next().value!));
      await store.close();
      expect(owner.failure).toMatchObject({ code: 'ENOSPC' });
      store.append(owner.perform(transactions.next().value!));
      await store.close();
      expect(owner.durableZxid).toBe(0n);
    },
  );
});

describe('a snapshot', () => {
  test('replaces the logs before it, and gives back the same', async () => {
    const folder = new SimulatedFolder();
    const { store, owner } = await open(folder, 2_000);
    for (const transaction of traffic((1n << 32n) + 1n)) {
      if (transaction.zxid > (1n << 32n) + 200n) break;
      store.append(owner.perform(transaction));
      if (transaction.zxid % 7n === 0n) await store.close();
    }
    await store.close();
    const names = [...folder.files.keys()].sort();
    expect(names.filter((name) => name.startsWith('snapshot.'))).toHaveLength(1);
    expect(names.filter((name) => name.startsWith('log.')).length).toBeLessThanOrEqual(2);
    expect(picture((await open(folder)).owner)).toEqual(picture(owner));
  });

  test('that is damaged anywhere is refused', async () => {
    const folder = new SimulatedFolder();
    const { store, owner } = await open(folder, 500);
    for (const transaction of traffic((1n << 32n) + 1n)) {
      if (transaction.zxid > (1n << 32n) + 30n) break;
      store.append(owner.perform(transaction));
      await store.close();
    }
    const name = [...folder.files.keys()].find((file) => file.startsWith('snapshot.'))!;
    const { content } = folder.files.get(name)!;
    for (let at = 0; at < content.byteLength; at += 3) {
      const damaged = folder.copy();
      damaged.files.get(name)!.content[at]! ^= 0x10;
      await expect(open(damaged), `flipped at ${at}`).rejects.toBeInstanceOf(CorruptLogError);
    }
  });
});

describe('a power cut', () => {
  test('loses nothing that was promised, over many lives', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const folder = new SimulatedFolder();
      let promised = 0n;
      for (let life = 0; life < 4; life++) {
        const { store, owner } = await open(folder, 1_500);
        expect(owner.zxid, `seed ${seed}, life ${life}`).toBeGreaterThanOrEqual(promised);
        const transactions = traffic(owner.nextZxid);
        for (let count = random.u32() % 60; count > 0; count--) {
          const transaction = transactions.next().value!;
          store.append(owner.perform(transaction));
          if (random.u32() % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        promised = owner.durableZxid > promised ? owner.durableZxid : promised;
        folder.powerCut(random);
      }
    }
  });
});
