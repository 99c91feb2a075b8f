import {
  AuthFailedError,
  ClosedError,
  type Outcome,
  QueueFullError,
  ServerBehindError,
  type SessionLossCause,
  SessionLostError,
  type ZkError,
} from '../protocol/errors.ts';
import type { QueueLimits } from './session-io.ts';
import type { SessionRequest } from './session-request.ts';

// Each says what happened, to what, and what can be done about it.

export function queueFull({ what }: SessionRequest, { requestsMax, bytesMax }: QueueLimits): QueueFullError {
  return new QueueFullError(
    `${what}: not sent, since there is no connection and too much waits for one already; ` +
      `at most ${requestsMax} requests of together ${bytesMax} bytes may (queuedRequestsMax, queuedBytesMax)`,
  );
}

/** `zxid` is the newest transaction that the server knows, where it has said so. */
export function serverBehind(seenZxid: bigint, zxid?: bigint): ServerBehindError {
  const known = zxid === undefined ? '' : `; its newest is 0x${zxid.toString(16)}`;
  return new ServerBehindError(
    `the server does not know transaction 0x${seenZxid.toString(16)}, which this client has seen${known}: it belongs to ` +
      'another ensemble, was restored from an older backup, or lags; tokens would be smaller there (acceptOlderServers)',
  );
}

export function clientClosed({ what }: SessionRequest): ClosedError {
  return new ClosedError(`${what}: not sent, since the client was closed before; connect() opens another`);
}

/** `request` is what was asked of a session that is over already. */
export function sessionOver(
  cause: SessionLossCause | 'auth-failed',
  outcome: Outcome,
  request?: SessionRequest,
): ZkError {
  const what = request ? `${request.what}: ` : '';
  return cause === 'auth-failed'
    ? new AuthFailedError(`${what}the servers refused the credentials; connect anew with others`, outcome)
    : new SessionLostError(`${what}the session is over (${cause})`, cause, outcome);
}
