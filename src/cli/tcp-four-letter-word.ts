import { connect } from 'node:net';
import type { Clock } from '../base/clock.ts';

/** Asks a server on a unix socket one of ZooKeeper's four-letter words; undefined if it does not answer in time. */
export function askFourLetterWord(
  socketPath: string,
  word: string,
  { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(socketPath, () => socket.write(word));
    const settle = (text: string | undefined) => {
      cancel();
      socket.destroy();
      resolve(text);
    };
    const cancel = clock.at(clock.nowMs() + timeoutMs, () => settle(undefined));
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      answer += text;
    });
    socket.on('end', () => settle(answer));
    socket.on('error', () => settle(undefined));
  });
}
