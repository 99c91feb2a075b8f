import { orAbort } from '../base/abort.ts';
import { deferred } from '../base/deferred.ts';
import { isServerError, SessionLostError } from '../protocol/errors.ts';

type OnChange = (event: unknown) => void;

/** What observing needs of a client. */
interface ObservedClient {
  exists(path: string, options: { watch: OnChange; signal?: AbortSignal }): Promise<unknown>;
}

/**
 * The state that `read` returns, now and after each change: read and watch, hand out, await the watch, again.
 * Undefined while there is no such node. A session that is lost only means that the next read is another's.
 */
export async function* observe<T>(
  zk: ObservedClient,
  path: string,
  signal: AbortSignal | undefined,
  read: (watch: OnChange) => Promise<T>,
): AsyncGenerator<T | undefined, void, void> {
  for (;;) {
    const changed = deferred<unknown>();
    let state: T | undefined;
    try {
      state = await read(changed.resolve);
    } catch (error) {
      if (error instanceof SessionLostError) continue;
      if (!isServerError(error, 'no-node')) throw error;
      const stat = await zk.exists(path, { watch: changed.resolve, ...(signal && { signal }) });
      if (stat) continue; // Made between the two looks.
    }
    yield state;
    await orAbort(changed.promise, signal);
  }
}
