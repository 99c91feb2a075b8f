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

/**
 * Does something that may be done twice, until it is known to be done or the session is over. What a lost connection
 * left open is asked again at once, so that it goes out before anything newer once there is a connection again.
 */
export async function untilSettled(attempt: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (isSessionOver(error)) return;
      if (!isInterrupted(error)) throw error;
    }
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

/** Deletes a node of this session's for sure; that it is gone already is fine. */
export function deleteForSure(zk: ZooKeeper, path: string, session: Session): Promise<void> {
  return untilSettled(async () => {
    try {
      await zk.delete(path, { session });
    } catch (error) {
      if (!isServerError(error, 'no-node')) throw error;
    }
  });
}
