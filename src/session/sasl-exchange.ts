import type { Random } from '../base/random.ts';
import { conditionOf, errorCodes } from '../protocol/error-codes.ts';
import { answerChallenge, type SaslCredentials } from './sasl-digest-md5.ts';

/** What follows from a server's answer: another token to send, the end, a refusal, or that it cannot be had here. */
export type SaslStep =
  | { readonly kind: 'send'; readonly token: Buffer }
  | { readonly kind: 'done' }
  /** The server does not take the credentials: they are wrong, or it has no SASL. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The server is in trouble, or does not know the password itself: that says nothing of the credentials. */
  | { readonly kind: 'failed'; readonly message: string };

const WRONG_PASSWORD: SaslStep = { kind: 'refused', message: 'sasl: the server refused the credentials' };
const NO_SASL: SaslStep = { kind: 'refused', message: 'sasl: the server has no SASL' };
/** Whether an answer says that the credentials are wrong. The server closes the connection behind it. */
export function isRefusal(err: number): boolean {
  return err === errorCodes['auth-failed'] || err === errorCodes['session-closed-requires-sasl-auth'];
}

/** One DIGEST-MD5 exchange on one connection: an empty token, the answer to a challenge, the server's proof. */
export class SaslExchange {
  readonly #credentials: SaslCredentials;
  readonly #random: Random;
  #proof: string | undefined;

  constructor(credentials: SaslCredentials, random: Random) {
    this.#credentials = credentials;
    this.#random = random;
  }

  /** `err` is the code of the server's answer, `token` what it holds: null if nothing. */
  next(err: number, token: Buffer | null): SaslStep {
    if (isRefusal(err)) return WRONG_PASSWORD;
    if (err === errorCodes.unimplemented) return NO_SASL;
    if (err !== 0) {
      return { kind: 'failed', message: `sasl: the server answered ${conditionOf(err)} (${err})` };
    }
    if (token === null) {
      // Where clients may go on without having logged in, a wrong password is answered like this too.
      return this.#proof === undefined ? NO_SASL : WRONG_PASSWORD;
    }
    const text = token.toString('utf8');
    if (this.#proof === undefined) {
      const clientNonce = Buffer.from(this.#random.bytes(24)).toString('base64');
      const answer = answerChallenge(text, this.#credentials, clientNonce);
      this.#proof = answer.proof;
      return { kind: 'send', token: answer.token };
    }
    if (text !== this.#proof)
      return { kind: 'failed', message: 'sasl: the server does not know the password' };
    return { kind: 'done' };
  }
}
