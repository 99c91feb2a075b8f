import { sleep } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import {
  ClosedError,
  ConnectionLossError,
  isServerError,
  MultiError,
  QueueFullError,
  SessionLostError,
} from '../protocol/errors.ts';

/** True if the connection was lost, or was left for another, and the session may live on: it can be asked again. */
export function isInterrupted(error: unknown): boolean {
  return error instanceof ConnectionLossError || isServerError(error, 'session-moved');
}

/** True if it was not sent, since there was no connection or that had just ended: nothing has happened. */
export function isUnsent(error: unknown): boolean {
  return error instanceof ConnectionLossError && error.outcome === 'not-applied';
}

/** True if everything ephemeral of that session is gone, or will be without anyone's doing. */
export function isSessionOver(error: unknown): boolean {
  return error instanceof SessionLostError || error instanceof ClosedError;
}

/** Refused for now, and not done: the server takes no writes, or it or this client has too much to do. */
function isRefusedForNow(error: unknown): boolean {
  if (error instanceof QueueFullError) return true;
  return isServerError(error, 'not-read-only') || isServerError(error, 'throttled-op');
}

/** How soon a write is made again that could not be taken. */
const RETRY_MS = 250;

/** Whose time and session a write is of. */
export interface WriteBounds {
  readonly clock: Clock;
  readonly session: Session;
}

/**
 * Does something that may be done twice, until it is known to be done or the session is over. What a lost connection
 * left open is asked again at once, so that it goes out before anything newer once there is a connection again.
 */
export async function untilSettled(bounds: WriteBounds, attempt: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await untilWritable(bounds, attempt);
      return;
    } catch (error) {
      if (isSessionOver(error)) return;
      if (!isInterrupted(error)) throw error;
    }
  }
}

/**
 * Asks again while the server takes no writes, its disk being full or its quorum away, while it refuses requests because
 * it has too many, and while the client takes no more of them on, since there is no connection and too much waits for
 * one. For what cannot be left open: an entry that is not removed, or not known to be there, would stay in everybody's
 * way for as long as the session.
 */
export async function untilWritable<T>(
  { clock, session }: WriteBounds,
  attempt: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRefusedForNow(error)) throw error;
    }
    await sleep(clock, RETRY_MS, session.lost).catch(() => {}); // The attempt will say that it is over.
  }
}

/** Asks until there is an answer. A read that several connections in a row left open is given up by the client. */
export async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isInterrupted(error)) throw error;
    }
  }
}

/**
 * Deletes a node of this session's for sure; that it is gone already is fine. With `madeBy`, where others may make a
 * node of this name: what an unanswered request has deleted may be theirs by now, and is looked at before it is
 * repeated. With `mayBeAnother` it is looked at before the first request too.
 */
export function deleteForSure(
  zk: ZooKeeper,
  path: string,
  bounds: WriteBounds,
  madeBy?: { readonly czxid: bigint; readonly mayBeAnother: boolean },
): Promise<void> {
  const { session } = bounds;
  let mayBeAnother = madeBy?.mayBeAnother ?? false;
  return untilSettled(bounds, async () => {
    if (madeBy && mayBeAnother && (await zk.exists(path, { session }))?.czxid !== madeBy.czxid) return;
    mayBeAnother = true;
    try {
      await zk.delete(path, { session });
    } catch (error) {
      if (!isServerError(error, 'no-node')) throw error;
    }
  });
}

/**
 * Asks the leader, by one transaction, whether all of these nodes are there; the index of the first that is not. Behind
 * the answer the session has seen all that was done before that transaction.
 */
export async function firstMissing(
  zk: ZooKeeper,
  paths: readonly string[],
  bounds: WriteBounds,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const { session } = bounds;
  const checks = paths.map((path) => ops.check(path));
  const asking = { session, ...(signal && { signal }) };
  try {
    await untilAnswered(() => untilWritable(bounds, () => zk.multi(checks, asking)));
    return undefined;
  } catch (error) {
    if (error instanceof MultiError && error.condition === 'no-node') return error.index;
    throw error;
  }
}
