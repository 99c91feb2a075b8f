import type { Random } from '../base/random.ts';
import { answerChallenge, type SaslCredentials } from './sasl-digest-md5.ts';

/** What follows from a server's token: another token to send, the end, or a refusal. */
export type SaslStep =
  | { readonly kind: 'send'; readonly token: Buffer }
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly message: string };

/** One DIGEST-MD5 exchange on one connection: an empty token, the answer to a challenge, the server's proof. */
export class SaslExchange {
  readonly #credentials: SaslCredentials;
  readonly #random: Random;
  #proof: string | undefined;

  constructor(credentials: SaslCredentials, random: Random) {
    this.#credentials = credentials;
    this.#random = random;
  }

  /** `token` is null when the server refused, or has no SASL. */
  next(token: Buffer | null): SaslStep {
    if (token === null) {
      return { kind: 'refused', message: 'sasl: the server refused the credentials, or has no SASL' };
    }
    const text = token.toString('utf8');
    if (this.#proof === undefined) {
      const clientNonce = Buffer.from(this.#random.bytes(24)).toString('base64');
      const answer = answerChallenge(text, this.#credentials, clientNonce);
      this.#proof = answer.proof;
      return { kind: 'send', token: answer.token };
    }
    if (text !== this.#proof)
      return { kind: 'refused', message: 'sasl: the server does not know the password' };
    return { kind: 'done' };
  }
}
