// What operators' tools read: each answer of the embedded server has the shape of ZooKeeper's.
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, startServer } from '../../src/server/start-server.ts';
import { connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { fourLetterWord, startZooKeeper, type ZooKeeperProcess } from '../support/zookeeper-process.ts';

interface Side {
  readonly server: RunningServer | ZooKeeperProcess;
  readonly zk: ZooKeeper;
}
const sides: Side[] = [];

/** Both alone, with one client that did the same on each. */
beforeAll(async () => {
  const servers = await Promise.all([
    startServer({ fourLetterWords: '*', limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 } }),
    startZooKeeper({ tickTimeMs: 500 }),
  ]);
  for (const server of servers) {
    // With so long a timeout no ping is sent while this runs, which would be the last operation of one side only.
    const zk = await connect(server.connectString, { sessionTimeoutMs: 40_000 });
    sides.push({ server, zk });
    await zk.create('/e', 'x', { mode: 'ephemeral' });
    await zk.create('/p', 'x');
    await zk.addWatch('/p', 'persistent', () => {});
  }
});
afterAll(async () => {
  for (const { zk, server } of sides) {
    await zk.close();
    await server[Symbol.asyncDispose]();
  }
});

const askBoth = (word: string) => Promise.all(sides.map(({ server }) => fourLetterWord(server, word)));

describe('the embedded server answers as ZooKeeper does', () => {
  test.each(['ruok', 'isro', 'srvr', 'stat', 'cons', 'dump', 'wchs', 'wchc', 'wchp', 'dirs', 'conf'])(
    '%s',
    async (word) => {
      const [ours, theirs] = (await askBoth(word)).map(shape);
      expect(ours).toBe(theirs);
    },
  );

  test.each(['crst', 'srst'])('%s, and what is counted from then on', async (word) => {
    const [ours, theirs] = (await askBoth(word)).map(shape);
    expect(ours).toBe(theirs);
    const [oursAfter, theirsAfter] = (await askBoth('cons')).map(shape);
    expect(oursAfter).toBe(theirsAfter);
  });

  test('envi, but for what only a JVM has', async () => {
    const [ours, theirs] = (await askBoth('envi')).map(keys);
    expect(ours!.filter((key) => !key.startsWith('node.'))).toEqual(
      theirs!.filter((key) => !key.startsWith('java.')),
    );
  });

  test('mntr, as far as monitors go', async () => {
    const [ours, theirs] = (await askBoth('mntr')).map(keys);
    expect(ours!.length).toBeGreaterThan(15);
    expect(ours!.filter((key) => !theirs!.includes(key))).toEqual([]);
  });

  test.each(['abcd', 'kill'])('%s, which is no word, not at all', async (word) => {
    expect(await askBoth(word)).toEqual(['', '']);
  });
});

test('words that name clients are not answered unless asked for', async () => {
  await using server = await startServer();
  expect(await fourLetterWord(server, 'cons')).toBe(
    'cons is not executed because it is not in the whitelist.\n',
  );
  expect(await fourLetterWord(server, 'ruok')).toBe('imok');
});

test('conf and dirs tell where the data is and what it takes up', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-words-'));
  try {
    await using server = await startServer({ folder, fourLetterWords: '*' });
    await using zk = await connect(server.connectString);
    await zk.create('/big', 'x'.repeat(100_000));
    const sizes = await Promise.all(
      (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size),
    );
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeGreaterThan(100_000);
    expect(await fourLetterWord(server, 'dirs')).toBe(`datadir_size: ${bytes}\nlogdir_size: ${bytes}\n`);
    const conf = await fourLetterWord(server, 'conf');
    expect(conf).toContain(
      `dataDir=${folder}\ndataDirSize=${bytes}\ndataLogDir=${folder}\ndataLogSize=${bytes}\n`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** Everything that may be another on another server becomes a letter: numbers, dates, folders, the version. Connections come in any order. */
function shape(text: string): string {
  return (
    text
      .replaceAll(/version: .*/g, 'version: V')
      .replaceAll(/\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}/g, 'D')
      .replaceAll(/Dir=.*/g, 'Dir=F')
      .replaceAll(/0x[0-9a-f]+/g, 'X')
      .replaceAll(/-?\d+(\.\d+)*/g, 'N')
      .replaceAll('/N:N', '/ADDRESS')
      // ZooKeeper keeps the sets that have become empty until their time has come.
      .replaceAll(/N expire at D:\n(?!\t)/g, '')
      .replaceAll(/( \/.*\n)+/g, (connections) =>
        connections
          .split(/(?<=\n)/)
          .sort()
          .join(''),
      )
  );
}

function keys(text: string): string[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/[=\t]/)[0]!);
}
