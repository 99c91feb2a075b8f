import type { ServerAddress } from '../session/session-io.ts';
import { type Asking, askFourLetterWord } from './four-letter-word.ts';

/** The first version that understands `multiRead`; one before ends the connection over it. */
const SINCE = { major: 3, minor: 6 };
const VERSION_LINE = /^Zookeeper version: (\d+)\.(\d+)\..*\n/;

/**
 * Asks a server by the four-letter word `srvr`, the one that ZooKeeper answers unless told otherwise, whether its
 * version understands `multiRead`. Whatever else it says, or does not, means no. Never rejects.
 */
export async function understandsMultiRead(server: ServerAddress, asking: Asking): Promise<boolean> {
  const answer = await askFourLetterWord(server, 'srvr', (text) => text.includes('\n'), asking);
  const [, major, minor] = VERSION_LINE.exec(answer ?? '') ?? [];
  if (major === undefined) return false;
  return Number(major) > SINCE.major || (Number(major) === SINCE.major && Number(minor) >= SINCE.minor);
}
