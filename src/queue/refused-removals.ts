import { sleep } from '../base/abort.ts';
import { Backoff } from '../base/backoff.ts';
import type { Session } from '../client/session.ts';
import type { QueueStore } from './queue-store.ts';
import { deleteForSure } from './settled-writes.ts';
import type { StoreSession } from './store-session.ts';

/** Twice a second at first, every ten seconds in the end: an access list that is mended is noticed in that time. */
const RETRY = { delayMsMin: 500, delayMsMax: 10_000 };

/**
 * Repeats the removal of an entry that the server has refused (`ZK_NO_AUTH`, for example), until it succeeds or the
 * session is over. Without that the entry would block every contender behind it for as long as the session lives, since
 * most callers that remove one have given up, and do not call again.
 */
export async function repeatRefusedRemoval(
  { clock, random, log }: Pick<QueueStore, 'clock' | 'random' | 'log'>,
  entry: { readonly path: string; readonly session: Session; readonly refusedWith: unknown },
  remove: () => Promise<void>,
): Promise<void> {
  const { path, session, refusedWith } = entry;
  log?.('warn', 'the removal of an entry was refused, and is repeated', { path, error: refusedWith });
  const backoff = new Backoff(RETRY, random);
  for (;;) {
    try {
      await sleep(clock, backoff.nextDelayMs(), session.lost);
    } catch {
      return; // The session is over, and the entry with it.
    }
    try {
      await remove();
    } catch {
      continue;
    }
    log?.('info', 'an entry whose removal was refused is removed', { path });
    return;
  }
}

/** Removes an entry that has no place yet, in the background; repeated where it is refused. */
export function removeInBackground(
  { store, session }: StoreSession,
  path: string,
  madeBy?: { readonly czxid: bigint },
): void {
  const bounds = { clock: store.clock, session };
  const remove = (mayBeAnother: boolean) =>
    deleteForSure(store.zk, path, bounds, madeBy && { ...madeBy, mayBeAnother });
  remove(false).catch((error) =>
    repeatRefusedRemoval(store, { path, session, refusedWith: error }, () => remove(true)),
  );
}
