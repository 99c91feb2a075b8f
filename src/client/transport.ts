import type { ServerAddress } from '../session/session-io.ts';

/** What a connection tells. Never called from inside `dial`, `write` or `destroy`, nor after `destroy`. */
export interface LinkHandlers {
  opened(): void;
  /** The chunk is the transport's, and read into again: whatever is kept of it has to be copied. */
  received(chunk: Buffer): void;
  /** The last call, whoever ended the connection. */
  closed(error?: Error): void;
}

export interface Link {
  /** Which of the server's addresses it leads to, where that is known. */
  readonly address?: string | undefined;
  write(bytes: Buffer): void;
  /** Ends the connection at once, whatever is still to be written. */
  destroy(): void;
}

/** How servers are reached: TCP and TLS in production, a simulated network in simulations. */
export interface Transport {
  dial(server: ServerAddress, handlers: LinkHandlers): Link;
}
