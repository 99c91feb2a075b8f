import { ProtocolError } from '../protocol/errors.ts';
import { type Connect, type Connected, SESSION_PASSWORD_BYTES } from '../protocol/handshake.ts';
import type { ValueOf } from '../protocol/record.ts';

const NEW_SESSION_PASSWORD = Buffer.alloc(SESSION_PASSWORD_BYTES);

/** What a server grants in its answer to a handshake. It counts once the server has proven what it must prove. */
export interface Grant {
  readonly sessionId: bigint;
  readonly password: Buffer;
  readonly timeoutMs: number;
  readonly readOnly: boolean;
  /** When the handshake was sent. */
  readonly sentAtMs: number;
}

/** What a session was granted, and how it is asked for again. */
export class SessionGrant {
  /** 0n until a server has granted the session. */
  id = 0n;
  password: Buffer = NEW_SESSION_PASSWORD;
  /** False for a session granted by read-only servers alone: it is not known elsewhere, and cannot be resumed. */
  isResumable = false;

  request(wanted: {
    readonly timeoutMs: number;
    readonly lastZxid: bigint;
    readonly readOnlyAllowed: boolean;
  }): ValueOf<typeof Connect> {
    return {
      protocolVersion: 0,
      lastZxidSeen: wanted.lastZxid,
      timeOut: wanted.timeoutMs,
      sessionId: this.isResumable ? this.id : 0n,
      passwd: this.isResumable ? this.password : NEW_SESSION_PASSWORD,
      readOnly: wanted.readOnlyAllowed,
    };
  }

  /** Undefined if the peer says that the session is over. @throws ProtocolError for what cannot be granted. */
  read(
    answer: ValueOf<typeof Connected>,
    { sentAtMs, readOnlyAllowed }: { readonly sentAtMs: number; readonly readOnlyAllowed: boolean },
  ): Grant | undefined {
    const { sessionId, timeOut: timeoutMs } = answer;
    if (timeoutMs <= 0 || (this.isResumable && sessionId !== this.id)) {
      if (this.isResumable) return undefined;
      throw new ProtocolError(`a new session with a timeout of ${timeoutMs} ms`);
    }
    const readOnly = answer.readOnly === true;
    if (readOnly && !readOnlyAllowed) throw new ProtocolError('a read-only server, unasked');
    return { sessionId, password: answer.passwd as Buffer, timeoutMs, readOnly, sentAtMs };
  }

  take({ sessionId, password, readOnly }: Grant): void {
    this.id = sessionId;
    this.password = password;
    if (!readOnly) this.isResumable = true;
  }
}
