// Holdfast, as its README says.
import { connect, type Holdfast } from 'holdfast';
import { Neighbours } from '../../../src/queue/neighbours.ts';
import { FIVE, SEMAPHORE_PERMITS } from '../orders.ts';
import {
  isWriteCycle,
  type LockDriver,
  type LockSession,
  serveOrders,
  type TakeLock,
} from './serve-orders.ts';

const [, , servers, flag] = process.argv as string[] as [string, string, string, string?];
const polling = flag === '--busy-poll' ? { busyPollMs: 1 } : {};

const driver: LockDriver = {
  async open({ apart } = { apart: false }): Promise<LockSession> {
    const neighbours = apart ? { neighbours: new Neighbours() } : {};
    const holdfast = await connect({ servers, sessionTimeoutMs: 30_000, ...polling, ...neighbours });
    let tasks = 0;
    return {
      lock: (kind, name) => {
        const task = tasks++;
        return taking(lockOf(holdfast, kind, name, task));
      },
      close: () => holdfast.close(),
    };
  },
};
await serveOrders(driver);

/** What is acquired in a cycle. */
type Chosen = (cycle: number) => { acquire(): Promise<{ release(): Promise<unknown> }> };

function lockOf(
  holdfast: Holdfast,
  kind: Parameters<LockSession['lock']>[0],
  name: string,
  task: number,
): Chosen {
  const always =
    (lock: ReturnType<Chosen>): Chosen =>
    () =>
      lock;
  switch (kind) {
    case 'mutex':
      return always(holdfast.mutex(name));
    case 'simple':
      return always(holdfast.simpleLock(`simple-${name}`));
    case 'five-locks':
      return always(holdfast.multiLock(Array.from({ length: FIVE }, (_, index) => `${name}-${index}`)));
    case 'semaphore':
      return always(holdfast.semaphore(`permits-${name}`, { permits: SEMAPHORE_PERMITS }));
    case 'read-write': {
      const { read, write } = holdfast.readWriteLock(`pages-${name}`);
      return (cycle) => (isWriteCycle(task, cycle) ? write : read);
    }
    case 'cached':
      return always(holdfast.mutex(`cached-${name}`, { cache: true }));
    case 'handed-on':
      return always(holdfast.mutex(`handed-on-${name}`, { handOff: true }));
  }
}

function taking(lockFor: Chosen): TakeLock {
  return async (cycle) => {
    const lease = await lockFor(cycle).acquire();
    return () => lease.release();
  };
}
