import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../../src/zookeeper.ts';
import { CommandProcess, isAlive } from '../support/command-process.ts';
import { runCommand } from '../support/command-run.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The processes that the story names. */
const pidsIn = (text: string) => [...text.matchAll(/kill -\w+ (\d+)/g)].map(([, pid]) => Number(pid));

async function demoFolders(): Promise<string[]> {
  await using zk = await connect(sharedStandalone().connectString);
  await zk.sync();
  return (await zk.children('/')).filter((name) => name.startsWith('holdfast-demo-'));
}

describe('holdfast demo', () => {
  test('tour: the queue moves, a killed holder is followed, a late write refused, the herd drawn; then it ends', async () => {
    await using tour = new CommandProcess(['demo', 'tour', '--clients', '3,12'], { cwd: folder });
    expect(await tour.exited()).toBe(0);
    const { stdout, stderr } = tour;
    expect(stderr).toBe('');
    const pictures = [...stdout.matchAll(/^ {3}(\[\w+\](?: ← \w+)*)$/gm)].map(([, picture]) => picture);
    expect(pictures).toEqual([
      '[ana] ← ben ← cem ← dua ← eli',
      '[ben] ← cem ← dua ← eli ← ana',
      '[cem] ← dua ← eli ← ana ← ben',
      '[dua] ← eli ← ana ← ben',
      '[eli] ← ana ← ben',
    ]);
    const [, late, highest] = /refused by the fence: token (\d+) is stale: (\d+) has been admitted/.exec(
      stdout,
    )!;
    expect(BigInt(late!)).toBeLessThan(BigInt(highest!));
    expect(stdout).toMatch(/and dua is told by its own lease: lock member-123: /);
    expect(stdout).toMatch(/^ {8}12 {2}SimpleLock {5}\d{3} {2}█{20,}/m);
    expect(await readFile(join(folder, 'holdfast-herd.svg'), 'utf8')).toMatch(
      /^<svg .*<polyline.*<\/svg>\n$/s,
    );
    expect(await readdir(folder)).toEqual(['holdfast-herd.svg']);
    expect(pidsIn(stdout).filter(isAlive)).toEqual([]);
  });

  test('herd on ZooKeeper: the simple lock costs n² requests, the mutex a few each; no node is left', async () => {
    const servers = sharedStandalone().connectString;
    await using herd = new CommandProcess([
      'demo',
      'herd',
      '--json',
      '--clients',
      '4,16',
      '--servers',
      servers,
    ]);
    expect(await herd.exited()).toBe(0);
    const { counts } = JSON.parse(herd.stdout);
    expect(counts.map(({ clients }: { clients: number }) => clients)).toEqual([4, 16]);
    for (const { clients, simple, mutex } of counts) {
      expect(simple.requests).toBeGreaterThanOrEqual(clients ** 2 + clients);
      expect(simple.events).toBeGreaterThanOrEqual((clients * (clients - 1)) / 2);
      expect(mutex.requests).toBeGreaterThanOrEqual(3 * clients);
      expect(mutex.requests).toBeLessThanOrEqual(8 * clients);
    }
    expect(await demoFolders()).toEqual([]);
  });

  test('pause on ZooKeeper: the late write is refused; no process and no node is left', async () => {
    await using pause = new CommandProcess(['demo', 'pause', '--session-timeout', '1s'], {
      env: { HOLDFAST_SERVERS: sharedStandalone().connectString },
    });
    expect(await pause.exited()).toBe(0);
    expect(pause.stdout).toMatch(/refused by the fence: token \d+ is stale/);
    expect(pidsIn(pause.stdout).filter(isAlive)).toEqual([]);
    expect(await demoFolders()).toEqual([]);
  });

  test('ended by Ctrl-C in the middle leaves no process, stopped or not, and no node', async () => {
    const { connectString } = sharedStandalone();
    await using pause = new CommandProcess([
      'demo',
      'pause',
      '--servers',
      connectString,
      '--session-timeout',
      '30s',
    ]);
    const [, frozen] = await pause.untilSaid(/kill -STOP (\d+)/);
    expect(await demoFolders()).toHaveLength(1);
    pause.kill('SIGINT');
    expect(await pause.exited()).toBe(130);
    await until('the frozen process to be gone', () => !isAlive(Number(frozen)));
    expect(await demoFolders()).toEqual([]);
  });

  test.each(['x', '1', '10,2.5', '9999', ''])('refuses a herd of %j', async (clients) => {
    const { exitCode, stderr } = await runCommand(['demo', 'herd', '--clients', clients]);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringMatching(/^holdfast: .*--clients.*such as 10,50,100 is needed.*\n$/),
    });
  });
});
