import { orAbort } from '../../base/abort.ts';
import { localPlace } from '../../local/local-place.ts';
import { servingServer } from '../../local/server-record.ts';
import { connectWith } from '../connection.ts';

/** A person has pressed a key: after this there are no names. */
const ANSWER_MS_MAX = 1_000;
/** What no shell reads as more than a word, nor breaks a word at. */
const PLAIN_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}._%+-]*$/u;

/**
 * The names of all locks, as far as the environment leads to servers that answer at once, and a shell can take the name
 * for what it is. Whatever goes wrong, there are none: it is no time for a message. Starts no server.
 */
export async function lockNames(env: Readonly<Record<string, string | undefined>>): Promise<string[]> {
  try {
    const servers = env['HOLDFAST_SERVERS'];
    if ((!servers || servers === 'local') && !(await servingServer(localPlace(env)))) return [];
    const bound = AbortSignal.timeout(ANSWER_MS_MAX);
    await using holdfast = await connectWith(servers ? { servers } : {}, {
      timeoutMs: ANSWER_MS_MAX,
      signal: bound,
    });
    const names = await orAbort(holdfast.zk.children(holdfast.root), bound);
    return names.filter((name) => PLAIN_NAME.test(name)).sort();
  } catch {
    return [];
  }
}
