import type { Clock } from '../base/clock.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { ClosedError, ConnectionLossError, isServerError, SessionLostError } from '../protocol/errors.ts';

/** True if the connection was lost, or was left for another, and the session may live on: it can be asked again. */
export function isInterrupted(error: unknown): boolean {
  return error instanceof ConnectionLossError || isServerError(error, 'session-moved');
}

/** True if everything ephemeral of that session is gone, or will be without anyone's doing. */
export function isSessionOver(error: unknown): boolean {
  return error instanceof SessionLostError || error instanceof ClosedError;
}

/** A server that is cut off from its quorum, or whose disk is full, takes no writes: asked again after this long. */
const REFUSED_PAUSE_MS = 250;

/** Whose time and session a write is of. */
interface WriteBounds {
  readonly clock: Clock;
  readonly session: Session;
}

/**
 * Does something that may be done twice, until it is known to be done or the session is over. What a lost connection
 * left open is asked again at once, so that it goes out before anything newer once there is a connection again. What a
 * server could not take is asked again later: an entry that was not removed would stand in everybody's way.
 */
export async function untilSettled(bounds: WriteBounds, attempt: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (isSessionOver(error)) return;
      if (isServerError(error, 'not-read-only')) await pauseWithin(bounds);
      else if (!isInterrupted(error)) throw error;
    }
  }
}

/** Shorter if the session ends. */
function pauseWithin({ clock, session: { lost } }: WriteBounds): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      lost.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.at(clock.nowMs() + REFUSED_PAUSE_MS, end);
    lost.addEventListener('abort', end);
    if (lost.aborted) end();
  });
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

/** Deletes a node of this session's for sure; that it is gone already is fine. */
export function deleteForSure(zk: ZooKeeper, path: string, bounds: WriteBounds): Promise<void> {
  return untilSettled(bounds, async () => {
    try {
      await zk.delete(path, { session: bounds.session });
    } catch (error) {
      if (!isServerError(error, 'no-node')) throw error;
    }
  });
}
