import type { Clock } from '../base/clock.ts';
import type { ServerAddress } from '../session/session-io.ts';
import type { Transport } from './transport.ts';

/** Asks a server by the four-letter word `isro` whether it serves writes. Never rejects. */
export function servesWrites(
  server: ServerAddress,
  { transport, clock, timeoutMs }: { transport: Transport; clock: Clock; timeoutMs: number },
): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = '';
    const settle = (result: boolean) => {
      cancel();
      link.destroy();
      resolve(result);
    };
    const link = transport.dial(server, {
      opened: () => link.write(Buffer.from('isro')),
      received(chunk) {
        answer += chunk.toString('latin1');
        if (answer.length >= 2) settle(answer === 'rw');
      },
      closed: () => settle(false),
    });
    const cancel = clock.at(clock.nowMs() + timeoutMs, () => settle(false));
  });
}
