import { orAbort } from '../base/abort.ts';
import { deferred } from '../base/deferred.ts';
import { endableGenerator } from '../base/endable-generator.ts';
import {
  ConnectionLossError,
  isServerError,
  SessionLostError,
  UnreachableError,
} from '../protocol/errors.ts';

type OnChange = (event: unknown) => void;

/** What observing needs of a client. */
interface ObservedClient {
  exists(path: string, options: { watch: OnChange }): Promise<unknown>;
  unwatch(path: string, kind: 'data' | 'exists' | 'children', listener: OnChange): Promise<void>;
}

/** What is observed: one read, and the kind of watch that it sets. */
interface Observed<T> {
  readonly path: string;
  readonly kind: 'data' | 'children';
  read(watch: OnChange): Promise<T>;
}

/**
 * The state that `read` returns, now and after each change: read and watch, hand out, await the watch, again.
 * Undefined while there is no such node. A session that is lost, or a time without a server, only means that the next
 * read comes later.
 *
 * One listener serves the whole observation, so that client and server have one watch for it, which is removed when
 * the observation ends: by `return`, by the signal, by an error.
 */
export function observe<T>(
  zk: ObservedClient,
  observed: Observed<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T | undefined, void, void> {
  return endableGenerator((ended) => observing(zk, observed, [signal, ended]));
}

async function* observing<T>(
  zk: ObservedClient,
  { path, kind, read }: Observed<T>,
  ends: readonly (AbortSignal | undefined)[],
): AsyncGenerator<T | undefined, void, void> {
  let changed = deferred();
  const onChange: OnChange = () => changed.resolve();
  // A watch exists at the server once its request is answered: one that is still unanswered is removed after that.
  let settingWatch:
    | { readonly kind: 'data' | 'exists' | 'children'; readonly answer: Promise<unknown> }
    | undefined;
  const watch = <R>(watchKind: 'data' | 'exists' | 'children', answer: Promise<R>): Promise<R> => {
    settingWatch = { kind: watchKind, answer };
    return orAbort(answer, ...ends);
  };
  const look = async (): Promise<{ readonly state: T | undefined } | undefined> => {
    try {
      return { state: await watch(kind, read(onChange)) };
    } catch (error) {
      if (!isServerError(error, 'no-node')) throw error;
      const stat = await watch('exists', zk.exists(path, { watch: onChange }));
      return stat ? undefined : { state: undefined }; // With a stat, the node was made between the two reads.
    }
  };
  try {
    for (;;) {
      for (const end of ends) end?.throwIfAborted();
      changed = deferred();
      const looked = await unlessInterrupted(look());
      if (!looked) continue;
      yield looked.state;
      await orAbort(changed.promise, ...ends);
    }
  } finally {
    if (settingWatch) {
      const { kind: watchKind, answer } = settingWatch;
      const remove = () => void zk.unwatch(path, watchKind, onChange);
      answer.then(remove, remove);
    }
  }
}

/** Undefined if the connection or the session was lost meanwhile, or no server answered: it is to be asked again. */
async function unlessInterrupted<T>(looking: Promise<T>): Promise<T | undefined> {
  try {
    return await looking;
  } catch (error) {
    const interrupted =
      error instanceof SessionLostError ||
      error instanceof ConnectionLossError ||
      error instanceof UnreachableError ||
      isServerError(error, 'session-moved');
    if (!interrupted) throw error;
    return undefined;
  }
}
