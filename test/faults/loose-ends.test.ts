import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { looseEnds } from '../support/loose-ends.ts';

describe('the guard of the fault tests', () => {
  test('passes a test that cleans up', async () => {
    await using _ends = looseEnds();
    clearTimeout(setTimeout(() => {}, 60_000));
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    listener.close();
  });

  test('sees a timer that was left behind, however short, and says where it was set', async () => {
    const ends = looseEnds();
    const timer = setTimeout(() => {}, 10);
    await expect(ends[Symbol.asyncDispose]()).rejects.toThrow(
      /left behind: a timer set .*loose-ends.test.ts/,
    );
    clearTimeout(timer);
  });

  test('waits for sockets that are about to close', async () => {
    await using _ends = looseEnds();
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    void delay(50).then(() => listener.close());
  });

  test('sees sockets that were left behind', async () => {
    const ends = looseEnds({ settleMsMax: 50 });
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const socket = connect((listener.address() as AddressInfo).port, '127.0.0.1');
    const [accepted] = await once(listener, 'connection');
    await expect(ends[Symbol.asyncDispose]()).rejects.toThrow(
      /left behind: .*1 TCPServerWrap.*2 TCPSocketWrap/,
    );
    accepted.destroy();
    socket.destroy();
    listener.close();
  });
});
