import { expect } from 'vitest';
import { connect } from '../../src/holdfast.ts';
import { ClosedError } from '../../src/zookeeper.ts';
import { onEveryBackend } from '../support/backends.ts';
import { until } from '../support/until.ts';

onEveryBackend('one who waits when its own client is closed is told that, and leaves', async (workspace) => {
  const servers = `${workspace.servers}${workspace.root}`;
  await using holder = await connect({ servers });
  const lease = await holder.mutex('a').acquire();
  const waiter = await connect({ servers });
  const mutex = waiter.mutex('a');
  const waiting = new Promise<void>((resolve) => void mutex.on('waiting', () => resolve()));
  const refusal = mutex.acquire().catch((error) => error);
  await waiting;
  await waiter.zk.exists('/'); // By then its watches are set.
  await waiter.close();
  expect(await refusal).toBeInstanceOf(ClosedError);
  await until('its leaving', async () => (await holder.inspect('a')).queue.length === 0);
  lease.assertHeld();
});
