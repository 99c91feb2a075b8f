import type { Random } from '../base/random.ts';
import type { ZkError } from '../protocol/errors.ts';
import type { LeaseOptions } from './contact.ts';
import type { SaslCredentials } from './sasl-digest-md5.ts';
import type { SessionRequest } from './session-request.ts';
import type { SessionState } from './session-state.ts';
import type { WatchEvent, Watcher } from './watch-registry.ts';

/** Where a server listens. */
export interface ServerAddress {
  /** A name, an IP address, or the absolute path of a unix socket; then the port says nothing. */
  readonly host: string;
  readonly port: number;
  /** Which of the name's addresses to take, where that matters; any if left out. */
  readonly address?: string | undefined;
}

/** Which server to try next, and how long to wait before. Told of success, so that it can stop backing off. */
export interface DialPlan {
  next(): { readonly server: ServerAddress; readonly delayMs: number };
  /** A connection served for `servedMs` before it ended, 0 if it never came up; `opened`: something listened there. */
  ended(end: { readonly servedMs: number; readonly opened: boolean }): void;
  /** Try this one first, at once. */
  prefer(server: ServerAddress): void;
  /** A server has not taken these credentials. True if there is none left that might: all have refused, none accepted. */
  refused(server: ServerAddress, credentials: object): boolean;
  /** A server has taken these credentials, so that they are right. */
  accepted(credentials: object): void;
}

export interface AuthInfo {
  readonly scheme: string;
  readonly auth: Uint8Array;
}

/** Who the client is. Belongs to the client, not to a session: every connection presents it anew. */
export interface Credentials {
  readonly auths: readonly AuthInfo[];
  readonly sasl: SaslCredentials | undefined;
}

/** How much may wait for a connection: what comes beyond is refused. */
export interface QueueLimits {
  readonly requestsMax: number;
  readonly bytesMax: number;
}

export interface SessionOptions {
  /** The session timeout to ask for. */
  readonly timeoutMs: number;
  /** How long a server has for accepting the connection and answering the handshake. */
  readonly connectTimeoutMs: number;
  readonly requestBytesMax: number;
  readonly replyBytesMax: number;
  /** How much may wait for a connection. */
  readonly queueLimits: QueueLimits;
  readonly readOnlyAllowed: boolean;
  /** The newest transaction that was seen in sessions before this one: a server that is behind it is not taken. */
  readonly seenZxid: bigint;
  /** Whether reads of one tick leave as one request: always, never, or (undefined) where the server is known to. */
  readonly gatherReads: boolean | undefined;
  /** What proves, while something is held, that the leader knows us: a `sync`, or a write by a quorum. */
  readonly heartbeat: 'leader' | 'quorum';
  readonly lease: LeaseOptions;
  readonly credentials: Credentials;
  readonly plan: DialPlan;
  readonly random: Random;
}

export type SessionInput =
  | { readonly kind: 'start' }
  | { readonly kind: 'link-opened' }
  | { readonly kind: 'link-closed'; readonly error?: Error }
  | { readonly kind: 'bytes-received'; readonly chunk: Buffer }
  | { readonly kind: 'time-passed' }
  /** The tick is over: what was asked for in it may leave. */
  | { readonly kind: 'flush' }
  | { readonly kind: 'request-made'; readonly request: SessionRequest }
  | { readonly kind: 'request-abandoned'; readonly request: SessionRequest }
  | { readonly kind: 'auth-added'; readonly auth: AuthInfo }
  | { readonly kind: 'hold-began' }
  | { readonly kind: 'hold-ended' }
  | { readonly kind: 'read-write-server-found'; readonly server: ServerAddress }
  /** The server has been caught being wrong: the session goes on with another. */
  | { readonly kind: 'server-mistrusted'; readonly error: Error }
  /** The server of this connection, so numbered by the effect that asked, understands `multiRead`. */
  | { readonly kind: 'multi-read-understood'; readonly connection: number }
  | { readonly kind: 'close' };

export type SessionEffect =
  | { readonly kind: 'dial'; readonly server: ServerAddress }
  | { readonly kind: 'hang-up' }
  | { readonly kind: 'send'; readonly bytes: Buffer }
  | { readonly kind: 'state-changed'; readonly state: SessionState; readonly error: Error | undefined }
  | {
      readonly kind: 'request-answered';
      readonly request: SessionRequest;
      readonly reply: unknown;
      /** Of a write: its own transaction. */
      readonly zxid: bigint;
    }
  | { readonly kind: 'request-refused'; readonly request: SessionRequest; readonly serverCode: number }
  | { readonly kind: 'request-failed'; readonly request: SessionRequest; readonly error: ZkError }
  | { readonly kind: 'auth-accepted'; readonly auth: AuthInfo }
  | { readonly kind: 'watcher-told'; readonly watcher: Watcher; readonly event: WatchEvent }
  | { readonly kind: 'leases-ended'; readonly error: ZkError }
  | { readonly kind: 'seek-read-write-server' }
  /** Many reads were made in one tick: it would be good to know whether the server understands `multiRead`. */
  | { readonly kind: 'ask-for-multi-read'; readonly server: ServerAddress; readonly connection: number }
  /** A connection attempt came to nothing: for whoever waits for the first one, and for the log. */
  | {
      readonly kind: 'attempt-failed';
      readonly server: ServerAddress;
      readonly error: Error;
      /** Something listened there, and did not take us. */
      readonly opened: boolean;
    };
