import { invariant } from '../base/assert.ts';
import type { SessionLossCause } from '../protocol/errors.ts';
import type { Grant } from './grant.ts';
import type { SaslExchange } from './sasl-exchange.ts';

/**
 * What is known of the session. `suspended`: the connection is down, the session may live. `lost`: the
 * session is over, known or assumed; final, since a new session is a new machine.
 */
export type SessionState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'connected'; readonly readOnly: boolean }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'closing'; readonly deadlineMs: number }
  | { readonly kind: 'closed' }
  | { readonly kind: 'lost'; readonly cause: SessionLossCause | 'auth-failed' };

/** Where the connection stands. A server is picked when the link is `down`, dialled at `dialAtMs`. */
export type LinkState =
  | { readonly kind: 'down'; readonly dialAtMs: number }
  | { readonly kind: 'dialling'; readonly deadlineMs: number }
  | { readonly kind: 'handshaking'; readonly deadlineMs: number; readonly sentAtMs: number }
  | {
      readonly kind: 'authenticating';
      readonly deadlineMs: number;
      /** Taken once the peer has proven that it knows the password. */
      readonly grant: Grant;
      readonly exchange: SaslExchange;
    }
  | { readonly kind: 'open' }
  | { readonly kind: 'gone' };

interface Transition<Kind extends string> {
  readonly from: Kind;
  readonly to: Kind;
  readonly when: string;
}

/** Every move the session can make; the diagram in docs/architecture.md is printed from this table. */
export const sessionTransitions: readonly Transition<SessionState['kind']>[] = [
  { from: 'connecting', to: 'connected', when: 'a server granted a session' },
  { from: 'connecting', to: 'lost', when: 'every server refused the credentials' },
  { from: 'connecting', to: 'closed', when: 'close()' },
  { from: 'connected', to: 'suspended', when: 'the connection ended, or was silent for 2/3 of the timeout' },
  { from: 'connected', to: 'closing', when: 'close()' },
  { from: 'connected', to: 'lost', when: 'the server said expired, or every server refused the credentials' },
  { from: 'suspended', to: 'connected', when: 'a server renewed the session' },
  {
    from: 'suspended',
    to: 'lost',
    when: 'the server said expired, or one timeout passed without proof of life',
  },
  { from: 'suspended', to: 'closed', when: 'close()' },
  { from: 'closing', to: 'closed', when: 'the server answered, or the time for it ran out' },
];

/** Every move the link can make. */
export const linkTransitions: readonly Transition<LinkState['kind']>[] = [
  { from: 'down', to: 'dialling', when: 'the back-off is over' },
  { from: 'dialling', to: 'handshaking', when: 'the socket opened' },
  { from: 'dialling', to: 'down', when: 'refused, or not open in time' },
  { from: 'handshaking', to: 'authenticating', when: 'the peer granted the session and SASL is configured' },
  { from: 'handshaking', to: 'open', when: 'the session was granted' },
  { from: 'handshaking', to: 'down', when: 'closed, or not answered in time' },
  { from: 'authenticating', to: 'open', when: 'the server proved that it knows the password' },
  { from: 'authenticating', to: 'down', when: 'closed, not answered in time, refused, or nothing proven' },
  { from: 'open', to: 'down', when: 'closed, silent, or not speaking the protocol' },
  { from: 'down', to: 'gone', when: 'the session is lost or closed' },
  { from: 'dialling', to: 'gone', when: 'the session is lost or closed' },
  { from: 'handshaking', to: 'gone', when: 'the session is lost or closed' },
  { from: 'authenticating', to: 'gone', when: 'the session is lost or closed' },
  { from: 'open', to: 'gone', when: 'the session is lost or closed' },
];

function guard<Kind extends string>(table: readonly Transition<Kind>[]): (from: Kind, to: Kind) => void {
  const allowed = new Set(table.map(({ from, to }) => `${from}>${to}`));
  return (from, to) => invariant(allowed.has(`${from}>${to}`), `no transition from ${from} to ${to}`);
}

export const checkSessionTransition = guard(sessionTransitions);
export const checkLinkTransition = guard(linkTransitions);
