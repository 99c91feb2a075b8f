import { describe, expect, expectTypeOf } from 'vitest';
import { MultiError, ops, type Stat } from '../../src/zookeeper.ts';
import { onEveryBackend } from '../support/backends.ts';

describe('multi', () => {
  onEveryBackend('does all of it as one transaction and types each result', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/present', 'a');
    const results = await zk.multi([
      ops.create('/n-', 'x', { mode: 'persistent-sequential' }),
      ops.check('/present', 0),
      ops.set('/present', 'b', 0),
      ops.delete('/n-0000000001'),
      ops.create('/box', '', { mode: 'container' }),
    ]);
    expectTypeOf(results[0].path).toEqualTypeOf<string>();
    expectTypeOf(results[2]).toEqualTypeOf<Stat>();
    expectTypeOf(results[3]).toEqualTypeOf<undefined>();
    expect(results[0].path).toBe('/n-0000000001');
    expect(results[2].version).toBe(1);
    expect(results[4].path).toBe('/box');
    expect((await zk.children('/')).sort()).toEqual(['box', 'present']);
  });

  onEveryBackend('does none of it if one operation is refused, and says which', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/present', 'a');
    const failed = zk.multi([ops.create('/new', ''), ops.set('/present', 'b', 7), ops.delete('/nothing')]);
    await expect(failed).rejects.toBeInstanceOf(MultiError);
    await expect(failed).rejects.toMatchObject({
      index: 1,
      code: 'ZK_BAD_VERSION',
      path: '/present',
      outcome: 'not-applied',
      message: 'multi, operation 1: setData /present: bad version',
    });
    expect(await zk.children('/')).toEqual(['present']);
  });

  onEveryBackend('lets later operations see earlier ones', async (workspace) => {
    const zk = await workspace.connect();
    const [, stat] = await zk.multi([ops.create('/a', '1'), ops.set('/a', '2', 0), ops.create('/a/b')]);
    expect(stat.version).toBe(1);
    expect(await zk.children('/a')).toEqual(['b']);
  });

  onEveryBackend('may be empty', async (workspace) => {
    const zk = await workspace.connect();
    expect(await zk.multi([])).toEqual([]);
  });

  onEveryBackend('says in which transaction its nodes were made', async (workspace) => {
    const zk = await workspace.connect();
    const [first, second] = await zk.multi([ops.create('/a', ''), ops.create('/b', '')]);
    expect(first.czxid).toBe((await zk.exists('/a'))?.czxid);
    expect(second.czxid).toBe(first.czxid);
  });
});

describe('multiRead', () => {
  onEveryBackend('answers each read by itself', async (workspace) => {
    const zk = await workspace.connect();
    await zk.create('/a', 'data');
    await zk.create('/a/b');
    const [data, children, missing] = await zk.multiRead([
      ops.get('/a'),
      ops.children('/a'),
      ops.get('/none'),
    ]);
    expect(data).toMatchObject({ ok: true, value: { data: Buffer.from('data'), stat: { numChildren: 1 } } });
    expect(children).toEqual({ ok: true, value: ['b'] });
    expect(missing).toMatchObject({ ok: false, error: { condition: 'no-node', path: '/none' } });
  });
});
