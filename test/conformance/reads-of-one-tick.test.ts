import { describe, expect } from 'vitest';
import type { ZooKeeper } from '../../src/zookeeper.ts';
import { onEveryBackend } from '../support/backends.ts';

const NODES = 20;
const CALLS = 1_000;

/** The n-th of the calls: mostly reads, some of nodes that there are not, and each 40th a write. */
function call(zk: ZooKeeper, root: string, n: number): Promise<unknown> {
  const node = `${root}/${(n * 7) % NODES}`;
  if (n % 40 === 39) return zk.set(node, `written by ${n}`).then(({ version }) => version);
  if (n % 90 === 50) return zk.create(`${node}/child-${n}`).then(({ path }) => path.slice(root.length));
  if (n % 31 === 30) return zk.get(`${root}/none-${n}`);
  if (n % 29 === 28) return zk.exists(node).then((stat) => stat?.version);
  if (n % 3 === 0) return zk.children(node).then((names) => names.sort());
  return zk.get(node).then(({ data, stat }) => [`${data}`, stat.version, stat.numChildren]);
}

/** What came of a call, without what differs from one tree to another. */
async function outcomeOf(root: string, made: Promise<unknown>): Promise<unknown> {
  return made.catch(({ code, path, message }: { code: string; path: string; message: string }) => {
    return [code, path, message].map((text) => text.replace(root, ''));
  });
}

describe('a thousand reads and writes in one tick', () => {
  onEveryBackend('give the same as one after another, gathered or not', async (workspace) => {
    const asked = await workspace.connect();
    const told = await workspace.connect({ gatherReads: true });
    const never = await workspace.connect({ gatherReads: false });
    const roots = ['/one-by-one', '/never', '/told', '/asking', '/asked'];
    for (const root of roots) {
      await never.create(root);
      await Promise.all(Array.from({ length: NODES }, (_, n) => never.create(`${root}/${n}`, `first ${n}`)));
    }
    await Promise.all([asked, told].map((zk) => zk.sync('/', { by: 'quorum' })));

    const oneByOne: unknown[] = [];
    for (let n = 0; n < CALLS; n++) {
      oneByOne.push(await outcomeOf('/one-by-one', call(never, '/one-by-one', n)));
    }
    const inOneTick = (zk: ZooKeeper, root: string) =>
      Promise.all(Array.from({ length: CALLS }, (_, n) => outcomeOf(root, call(zk, root, n))));
    expect(await inOneTick(never, '/never')).toEqual(oneByOne);
    expect(await inOneTick(told, '/told')).toEqual(oneByOne);
    expect(await inOneTick(asked, '/asking')).toEqual(oneByOne);
    expect(await inOneTick(asked, '/asked')).toEqual(oneByOne);
  });
});
