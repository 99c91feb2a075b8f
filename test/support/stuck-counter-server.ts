import { systemClock } from '../../src/base/clock.ts';
import { ServerCore } from '../../src/server/server-core.ts';
import { TcpListener } from '../../src/server/tcp-listener.ts';
import type { LockServers } from './lock-backends.ts';

const COUNT_MAX = 2 ** 31 - 1;

/** An embedded server on which a folder's counter can be at its end, which takes weeks to reach by itself. */
export async function startStuckCounterServer(): Promise<
  LockServers & AsyncDisposable & { setCounter(path: string, toEnd: number): void }
> {
  const core = new ServerCore({ clock: systemClock, fourLetterWords: '*' });
  const listener = new TcpListener(core, { onStep: () => {} });
  await listener.listen({ host: '127.0.0.1', port: 0 });
  const port = listener.port!;
  return {
    connectString: `127.0.0.1:${port}`,
    endpoints: [{ host: '127.0.0.1', port }],
    /** So that `toEnd` more nodes get a number of their own. */
    setCounter: (path, toEnd) => {
      core.tree.get(path)!.createCount = COUNT_MAX - toEnd;
    },
    [Symbol.asyncDispose]: () => listener.close(),
  };
}
