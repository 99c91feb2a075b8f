import type { ServerAddress } from '../session/session-io.ts';
import { type Asking, askFourLetterWord } from './four-letter-word.ts';

/** Asks a server by the four-letter word `isro` whether it serves writes. Never rejects. */
export async function servesWrites(server: ServerAddress, asking: Asking): Promise<boolean> {
  return (await askFourLetterWord(server, 'isro', ({ length }) => length >= 2, asking)) === 'rw';
}
