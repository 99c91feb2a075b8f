import { md5 } from '../base/hash.ts';
import { ProtocolError } from '../protocol/errors.ts';

/** A user of the servers' SASL configuration. */
export interface SaslCredentials {
  readonly username: string;
  readonly password: string;
}

const DIGEST_URI = 'zookeeper/zk-sasl-md5';
const NONCE_COUNT = '00000001';
/** RFC 2831, 2.1.1. A longer one is not a challenge, and is not worth the time it takes to read. */
const CHALLENGE_LENGTH_MAX = 2047;

export interface SaslAnswer {
  readonly token: Buffer;
  /** What the server must send back to prove that it knows the password too. */
  readonly proof: string;
}

/** The answer to a server's DIGEST-MD5 challenge (RFC 2831), as ZooKeeper uses it: qop auth, one round. */
export function answerChallenge(
  challenge: string,
  { username, password }: SaslCredentials,
  clientNonce: string,
): SaslAnswer {
  if (challenge.length > CHALLENGE_LENGTH_MAX) {
    throw new ProtocolError(`sasl: a challenge of ${challenge.length} bytes; it must be below 2048`);
  }
  const directives = parseDirectives(challenge);
  const nonce = directives.get('nonce');
  if (nonce === undefined) throw new ProtocolError('sasl: the challenge has no nonce');
  const realm = directives.get('realm') ?? '';

  const secret = md5(hashed(username), ':', hashed(realm), ':', hashed(password));
  const a1 = md5(secret, `:${nonce}:${clientNonce}:${username}`).toString('hex');
  const keyed = (a2: string) =>
    md5(`${a1}:${nonce}:${NONCE_COUNT}:${clientNonce}:auth:${md5(a2).toString('hex')}`).toString('hex');

  const token = [
    'charset=utf-8',
    `username=${quoted(username)}`,
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `nc=${NONCE_COUNT}`,
    `cnonce=${quoted(clientNonce)}`,
    `digest-uri="${DIGEST_URI}"`,
    'maxbuf=65536',
    `response=${keyed(`AUTHENTICATE:${DIGEST_URI}`)}`,
    'qop=auth',
    `authzid=${quoted(username)}`,
  ].join(',');
  return { token: Buffer.from(token, 'utf8'), proof: `rspauth=${keyed(`:${DIGEST_URI}`)}` };
}

/** In Latin-1 where that is enough (RFC 2831, 2.1.2.1), which the JDK holds clients to. */
function hashed(text: string): Buffer {
  const latin1 = Buffer.from(text, 'latin1');
  return latin1.toString('latin1') === text ? latin1 : Buffer.from(text, 'utf8');
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

function parseDirectives(challenge: string): Map<string, string> {
  const directives = new Map<string, string>();
  for (const [, name, quotedValue, value] of challenge.matchAll(
    /([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))/g,
  )) {
    directives.set(name!, quotedValue?.replace(/\\(.)/g, '$1') ?? value ?? '');
  }
  return directives;
}
