import { describe, expect, test } from 'vitest';
import { type Random, seededRandom } from '../../src/base/random.ts';
import { type Owner, open } from '../../src/server/storage/store.test-data.ts';
import { type FolderCall, SimulatedFolder } from '../environment/simulated-folder.ts';

const TRANSACTIONS = 30;
const TIMEOUT_MS = 120_000;

interface Life {
  readonly seed: number;
  readonly logBytesMax: number;
}
const shortLogs: Life = { seed: 1, logBytesMax: 900 };
const longerLogs: Life = { seed: 2, logBytesMax: 3_500 };

/** The same life again each time, up to where something is done to it. */
async function live(folder: SimulatedFolder, { seed, logBytesMax }: Life): Promise<Owner | undefined> {
  const random = seededRandom(seed);
  const pace = seededRandom(seed + 100);
  // Calls overlap: one file is synced while others are written, and more transactions come in meanwhile.
  folder.pause = async ({ name }) => {
    for (let turns = pace.u32() % (name.startsWith('log') ? 5 : 2); turns > 0; turns--) await turn();
  };
  const opened = await Promise.race([open(folder, logBytesMax), folder.stopped]);
  if (!opened) return undefined;
  const { store, owner } = opened;
  for (let count = 0; count < TRANSACTIONS; count++) {
    await mended(owner, folder);
    store.append(owner.perform(owner.next(random)));
    const pause = random.u32() % 4;
    if (pause === 0) await turn();
    if (pause === 1) await Promise.race([store.settled(), folder.stopped]);
  }
  await Promise.race([store.settled(), folder.stopped]);
  await mended(owner, folder);
  return owner;
}

async function mended(owner: Owner, folder: SimulatedFolder): Promise<void> {
  let stopped = false;
  void folder.stopped.then(() => {
    stopped = true;
  });
  while (owner.failure && !stopped) await turn();
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Everything promised is there, and what is there is exactly what once was, up to one transaction. */
function expectPrefix(found: Owner, before: Owner | undefined, what: string): void {
  const zxid = found.durableZxid;
  if (!before) {
    expect(zxid, what).toBe(0n);
    return;
  }
  expect(zxid, what).toBeGreaterThanOrEqual(before.durableZxid);
  // A number that was used up for a log's name stands for the transaction before it.
  const then = [...before.history, ...before.takenBack].filter(([at]) => at <= zxid);
  const [, picture] = then.reduce((newest, entry) => (entry[0] > newest[0] ? entry : newest));
  expect(found.picture() === picture, `${what}: what is there was there`).toBe(true);
  expect(found.zxid, `${what}: no number is used twice`).toBeGreaterThan(before.zxid);
}

async function callsOf(life: Life): Promise<readonly FolderCall[]> {
  const folder = new SimulatedFolder();
  await live(folder, life);
  return [...folder.calls];
}

async function stoppedAt(call: number, life: Life) {
  const folder = new SimulatedFolder();
  folder.stopAt = call;
  return { folder, before: await live(folder, life) };
}

/** What a second server promises or shows must outlast it as well, whatever the first one left unsynced. */
async function expectLaterLives(
  left: SimulatedFolder,
  before: Owner | undefined,
  random: Random,
  what: string,
) {
  const second = await open(left);
  expectPrefix(second.owner, before, what);
  const third = await open(left.afterPowerCut(random));
  expect(third.owner.picture(), `${what}, then another power cut`).toBe(second.owner.picture());
}

describe('a server that ends at any call to the disk', () => {
  test('goes through every kind of call, and through several snapshots, in one life', async () => {
    const calls = await callsOf(shortLogs);
    const snapshots = calls.filter(({ kind, name }) => kind === 'rename' && name === 'snapshot.tmp');
    expect(snapshots.length).toBeGreaterThan(2);
    const kinds = new Set(calls.map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual([
      'close',
      'create',
      'cut',
      'list',
      'remove',
      'rename',
      'sync',
      'sync-names',
      'write',
    ]);
  });

  for (const life of [shortLogs, longerLogs]) {
    test(`has lost nothing it promised when it was killed, logs of ${life.logBytesMax} bytes`, {
      timeout: TIMEOUT_MS,
    }, async () => {
      const calls = await callsOf(life);
      for (const { number, kind, name } of calls) {
        const { folder, before } = await stoppedAt(number, life);
        const what = `killed at ${number} (${kind} ${name})`;
        await expectLaterLives(folder.afterKill(), before, seededRandom(number), what);
      }
    });

    test(`has lost nothing it promised when the power went, logs of ${life.logBytesMax} bytes`, {
      timeout: TIMEOUT_MS,
    }, async () => {
      const calls = await callsOf(life);
      for (const { number, kind, name } of calls) {
        const { folder, before } = await stoppedAt(number, life);
        for (let chance = 1; chance <= 4; chance++) {
          const random = seededRandom(number * 31 + chance);
          const what = `power cut at ${number} (${kind} ${name}), chance ${chance}`;
          await expectLaterLives(folder.afterPowerCut(random), before, random, what);
        }
      }
    });
  }

  test('has lost nothing over many lives, each ended by a power cut', { timeout: TIMEOUT_MS }, async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = seededRandom(seed);
      let folder = new SimulatedFolder();
      let before: Owner | undefined;
      for (let life = 0; life < 5; life++) {
        folder.stopAt = folder.calls.length + 10 + (random.u32() % 150);
        const opened = await Promise.race([open(folder.copy()), folder.stopped]);
        if (opened && before) expectPrefix(opened.owner, before, `seed ${seed}, life ${life}`);
        before = (await live(folder, { seed: random.u32(), logBytesMax: 1_500 })) ?? before;
        folder = random.u32() % 2 === 0 ? folder.afterPowerCut(random) : folder.afterKill();
      }
    }
  });
});

describe('a disk that fails at any call', () => {
  const faults: Record<string, (call: FolderCall, at: number) => boolean> = {
    once: ({ number }, at) => number === at,
    'for a while': ({ number }, at) => number >= at && number < at + 25,
    'at writes and new files, for a while': ({ number, kind }, at) =>
      number >= at && number < at + 40 && (kind === 'write' || kind === 'create'),
    'at syncs, for a while': ({ number, kind }, at) =>
      number >= at && number < at + 40 && kind.startsWith('sync'),
  };

  for (const [how, fails] of Object.entries(faults)) {
    test(`${how}: promises nothing it does not keep, and comes back by itself`, {
      timeout: TIMEOUT_MS,
    }, async () => {
      const calls = await callsOf(shortLogs);
      let failureCount = 0;
      for (const { number, kind, name } of calls.filter((call) => how === 'once' || call.number % 3 === 0)) {
        const what = `failing from ${number} (${kind} ${name})`;
        const folder = new SimulatedFolder();
        folder.fault = (call) =>
          fails(call, number) ? Object.assign(new Error('no space left'), { code: 'ENOSPC' }) : undefined;
        let owner: Owner | undefined;
        try {
          owner = await live(folder, shortLogs);
        } catch (error) {
          expect(error, what).toMatchObject({ code: 'ENOSPC' }); // It could not even start.
          owner = undefined;
        }
        folder.fault = undefined;
        if (!owner) continue;
        failureCount += owner.failureCount;
        expect(owner.failure, what).toBeUndefined();
        expectLeftAlone(folder.calls, what);
        expectPrefix((await open(folder.afterKill())).owner, owner, `${what}, killed`);
        const cut = folder.afterPowerCut(seededRandom(number));
        expectPrefix((await open(cut)).owner, owner, `${what}, power cut`);
      }
      expect(failureCount).toBeGreaterThan(calls.length / 12);
    });
  }

  test('and ends at any call after that: what was taken back stays so once another log is begun', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const calls = await callsOf(longerLogs);
    const ofLogs = calls.filter(({ kind, name }) => /^(write|sync)$/.test(kind) && name.startsWith('log'));
    for (const { number: at } of ofLogs) {
      for (let stopAt = at + 1; stopAt < at + 28; stopAt += 3) {
        const folder = new SimulatedFolder();
        const fault = Object.assign(new Error('bad sector'), { code: 'EIO' });
        folder.fault = ({ number }) => (number >= at && number < at + 2 ? fault : undefined);
        folder.stopAt = stopAt;
        const owner = await live(folder, longerLogs).catch(() => undefined);
        if (!owner) continue;
        const what = `failing from ${at}, ended at ${stopAt}`;
        expectPrefix((await open(folder.afterKill())).owner, owner, `${what}, killed`);
        const cut = folder.afterPowerCut(seededRandom(at * 100 + stopAt));
        expectPrefix((await open(cut)).owner, owner, `${what}, power cut`);
      }
    }
  });
});

/** Nobody knows what a file has once a sync of it has failed: it must not be written or synced again. */
function expectLeftAlone(calls: readonly FolderCall[], what: string): void {
  const failed = new Set<string>();
  for (const { kind, name, failed: fails } of calls) {
    if (kind === 'create') failed.delete(name);
    if (failed.has(name))
      expect(kind, `${what}: ${kind} of ${name} after it failed`).not.toMatch(/^(write|sync)$/);
    if (fails && (kind === 'sync' || kind === 'write')) failed.add(name);
  }
}
