import { ops } from '../client/operations-of-multi.ts';
import { MultiError } from '../protocol/errors.ts';
import { isInterrupted, isUnsent, untilSettled } from './settled-writes.ts';
import type { StoreSession } from './store-session.ts';

/** An entry whose place is at that of another, or right before it. */
export interface EntryBeside {
  readonly folder: string;
  /** The name of the other. */
  readonly other: string;
  readonly name: string;
  readonly data: string;
}

/**
 * Makes it if the other is there; resolves with whether it was made. Given up, it sends nothing more that could make it,
 * and resolves all the same once it is known what became of what had been sent.
 *
 * @throws the signal's own reason, where nothing had been sent.
 */
export async function makeEntryBeside(
  { store, session, gate }: StoreSession,
  { folder, other, name, data }: EntryBeside,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { zk, clock, entryAcl } = store;
  const path = `${folder}/${name}`;
  // In one step: were the other gone already, those behind it could have been let in.
  const writes = [
    ops.check(`${folder}/${other}`),
    ops.create(path, data, { mode: 'ephemeral', acl: entryAcl }),
  ];
  let isMade = true;
  let isOpen = false; // It was sent, and not answered.
  await untilSettled({ clock, session }, async () => {
    await gate.pass(isOpen ? undefined : signal);
    if (signal?.aborted) {
      if (!isOpen) throw signal.reason;
      await zk.sync('/', { by: 'quorum', session });
      isMade = (await zk.exists(path, { session })) !== undefined;
      return;
    }
    try {
      await zk.multi(writes, { session, unqueued: true });
    } catch (error) {
      isOpen ||= isInterrupted(error) && !isUnsent(error);
      if (!(error instanceof MultiError)) throw error;
      if (error.index === 0) {
        // The other is gone; an attempt that was not answered may have come before that.
        isMade = (await zk.exists(path, { session })) !== undefined;
      } else if (error.condition !== 'node-exists') {
        throw error;
      }
    }
  });
  session.lost.throwIfAborted();
  return isMade;
}
