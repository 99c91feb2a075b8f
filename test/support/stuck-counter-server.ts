import { startTestServer } from '../../src/testing.ts';
import type { LockServers } from './lock-backends.ts';

const SEQUENCE_LAST = 2 ** 31 - 1;

/** An embedded server on which a folder's counter can be at its end, which takes weeks to reach by itself. */
export async function startStuckCounterServer(): Promise<
  LockServers & AsyncDisposable & { setCounter(path: string, toEnd: number): void }
> {
  const server = await startTestServer({ fourLetterWords: '*' });
  const { connectString, port } = server;
  return {
    connectString,
    endpoints: [{ host: '127.0.0.1', port }],
    /** So that `toEnd` more nodes get a number of their own. */
    setCounter: (path, toEnd) => server.setSequence(path, SEQUENCE_LAST - toEnd),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
