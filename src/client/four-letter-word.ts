import { onceAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { ServerAddress } from '../session/session-io.ts';
import type { Transport } from './transport.ts';

/** How a server is asked something outside a session. */
export interface Asking {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Ends it: the connection is gone, and the answer is undefined. */
  readonly signal: AbortSignal;
}

/** No answer that is waited for is longer; whoever says more does not speak this. */
const ANSWER_LENGTH_MAX = 4 * 1024;

/**
 * Asks a server one of ZooKeeper's four-letter words, on a connection of its own. Waits for as much of the answer as
 * `isEnough` wants; undefined if that does not come. Never rejects.
 */
export function askFourLetterWord(
  server: ServerAddress,
  word: 'isro' | 'srvr',
  isEnough: (answer: string) => boolean,
  { transport, clock, timeoutMs, signal }: Asking,
): Promise<string | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    let answer = '';
    const settle = (result: string | undefined) => {
      cancel();
      stopListening();
      link.destroy();
      resolve(result);
    };
    const giveUp = () => settle(undefined);
    const link = transport.dial(server, {
      opened: () => link.write(Buffer.from(word)),
      received(chunk) {
        answer += chunk.toString('latin1');
        if (isEnough(answer)) settle(answer);
        else if (answer.length > ANSWER_LENGTH_MAX) giveUp();
      },
      closed: giveUp,
    });
    const cancel = clock.at(clock.nowMs() + timeoutMs, giveUp);
    const stopListening = onceAborted(signal, giveUp);
  });
}
