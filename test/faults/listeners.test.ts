import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { FaultProxy } from '../../src/testing.ts';
import { connect, type ZooKeeper } from '../../src/zookeeper.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';

describe('a listener that fails', () => {
  test('as a watcher: hurts neither the other watchers nor the connection, and is reported', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString);
    const errors = recordErrors(zk);
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    let toldCount = 0;
    await Promise.all([
      zk.get(path, {
        watch() {
          throw new Error('one-shot');
        },
      }),
      zk.get(path, { watch: () => Promise.reject(new Error('asynchronous')) }),
      zk.get(path, { watch: () => toldCount++ }),
    ]);
    // Set before a write and a read that follow in one go: their answers come in the same turn.
    const [, state] = await Promise.all([zk.set(path, 'changed'), zk.get(path)]);
    expect(state.data?.toString()).toBe('changed');
    expect(toldCount).toBe(1);
    await until('both reports', () => errors.length === 2);
    expect(errors.sort()).toEqual(['asynchronous', 'one-shot']);

    await zk.addWatch(path, 'persistent', () => {
      throw new Error('persistent');
    });
    await zk.set(path, 'again');
    await zk.set(path, 'and again');
    await until('two more reports', () => errors.length === 4);
    expect(errors.slice(2)).toEqual(['persistent', 'persistent']);
    expect(proxy.acceptedCount).toBe(1);
  });

  test('to a change of state: hurts neither the other listeners nor the client, and is reported', async () => {
    await using _ends = looseEnds();
    await using proxy = await FaultProxy.start({ target: sharedStandalone() });
    await using zk = await connect(proxy.connectString, { sessionTimeoutMs: 1_000 });
    const errors = recordErrors(zk);
    const states: string[] = [];
    for (const name of ['connected', 'suspended', 'lost'] as const) {
      zk.on(name, () => {
        throw new Error(`thrown on ${name}`);
      });
      zk.on(name, async () => {
        throw new Error(`rejected on ${name}`);
      });
      zk.on(name, () => states.push(name));
    }
    const { session } = zk;
    proxy.resetAll();
    await zk.sync();
    proxy.refuse();
    proxy.resetAll();
    await until('the loss', () => states.includes('lost'));
    proxy.heal();
    await zk.sync();
    expect(states).toEqual(['suspended', 'connected', 'suspended', 'lost', 'connected']);
    expect(errors.sort()).toEqual(
      states.flatMap((name) => [`rejected on ${name}`, `thrown on ${name}`]).sort(),
    );
    expect(zk.session).not.toBe(session);
  });

  test('to the report of a failure: is not reported to itself', async () => {
    await using _ends = looseEnds();
    const logged: string[] = [];
    await using zk = await connect(sharedStandalone().connectString, {
      log: (level, message) => level === 'error' && logged.push(message),
    });
    let reportCount = 0;
    zk.on('listenerError', () => {
      reportCount++;
      throw new Error('not my day');
    });
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    await zk.get(path, {
      watch() {
        throw new Error('watcher');
      },
    });
    await zk.set(path, 'changed');
    await zk.sync();
    expect(reportCount).toBe(1);
    expect(logged).toEqual(['a listener threw', 'a listener of listenerError threw']);
  });

  test('with nobody listening for failures: is of no consequence', async () => {
    await using _ends = looseEnds();
    await using zk = await connect(sharedStandalone().connectString);
    const path = `/${randomUUID()}`;
    await zk.create(path, '', { mode: 'ephemeral' });
    await zk.get(path, { watch: () => Promise.reject(new Error('nobody will know')) });
    await zk.set(path, 'changed');
    await zk.sync();
  });
});

function recordErrors(zk: ZooKeeper): string[] {
  const errors: string[] = [];
  zk.on('listenerError', ({ error }) => errors.push((error as Error).message));
  return errors;
}
