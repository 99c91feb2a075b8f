import type { ServerAddress } from '../session/session-io.ts';
import { type Asking, askFourLetterWord } from './four-letter-word.ts';

/** The newest transaction that a server knows, by its own word; undefined if it does not say, or does not serve. */
export async function newestZxidOf(server: ServerAddress, asking: Asking): Promise<bigint | undefined> {
  const isEnough = (answer: string) => /^Zxid: 0x[0-9a-f]{1,16}\n/m.test(answer);
  const answer = await askFourLetterWord(server, 'srvr', isEnough, asking);
  const found = /^Zxid: (0x[0-9a-f]{1,16})$/m.exec(answer ?? '');
  return found ? BigInt(found[1]!) : undefined;
}
