import { describe, expect, test } from 'vitest';
import { ProtocolError } from '../protocol/errors.ts';
import { answerChallenge } from './sasl-digest-md5.ts';

const bob = { username: 'bob', password: 'bobpw' };
const nonce = 'TuDdwZ229sLZjtKRV+ngRCZLpNu4utaka4J51UFf';
const clientNonce = '9xiPGg6ukGTBp9v0BVoNZ2wqrkfsSSZMawBSDVgp';
const challenge = `realm="zk-sasl-md5",nonce="${nonce}",charset=utf-8,algorithm=md5-sess`;

const tokenOf = (...args: Parameters<typeof answerChallenge>) =>
  answerChallenge(...args).token.toString('utf8');
const directive = (token: string, name: string) => new RegExp(`(?:^|,)${name}=([^,]*)`).exec(token)?.[1];

describe('an answer to a DIGEST-MD5 challenge', () => {
  test('is the one that ZooKeeper accepted, and expects the proof that ZooKeeper gave', () => {
    const { token, proof } = answerChallenge(challenge, bob, clientNonce);
    expect(token.toString('utf8')).toBe(
      `charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="${nonce}",nc=00000001,cnonce="${clientNonce}",` +
        'digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=399b3ab1e285e8acc34b7e18e5753a84,qop=auth,' +
        'authzid="bob"',
    );
    expect(proof).toBe('rspauth=57021f5daa2208ba96074d79f76438c3');
  });

  test.each([
    ['in another order', `algorithm=md5-sess,charset=utf-8,nonce="${nonce}",realm="zk-sasl-md5"`],
    ['with spaces between directives', `realm="zk-sasl-md5", nonce="${nonce}", charset=utf-8`],
    ['with directives that matter to nobody', `qop="auth,auth-int",stale=true,${challenge},maxbuf=1024`],
    ['without quotes', `realm=zk-sasl-md5,nonce=${nonce}`],
    ['with a nonce inside another value', `x="a,nonce=\\"b\\",c",${challenge}`],
  ])('is the same if the challenge comes %s', (_, other) => {
    expect(answerChallenge(other, bob, clientNonce)).toEqual(answerChallenge(challenge, bob, clientNonce));
  });

  test.each([
    ['password', challenge, { ...bob, password: 'other' }, clientNonce],
    ['user', challenge, { ...bob, username: 'alice' }, clientNonce],
    ['client nonce', challenge, bob, 'other'],
    ['server nonce', challenge.replace(nonce, 'other'), bob, clientNonce],
    ['realm', challenge.replace('zk-sasl-md5', 'other'), bob, clientNonce],
  ])('depends on the %s, and so does the proof', (_, ...args) => {
    const same = answerChallenge(challenge, bob, clientNonce);
    const other = answerChallenge(...args);
    expect(directive(other.token.toString('utf8'), 'response')).toMatch(/^[0-9a-f]{32}$/);
    expect(directive(other.token.toString('utf8'), 'response')).not.toBe(
      directive(same.token.toString('utf8'), 'response'),
    );
    expect(other.proof).not.toBe(same.proof);
  });

  test('never carries the password', () => {
    expect(tokenOf(challenge, bob, clientNonce)).not.toContain('bobpw');
  });

  test('takes a challenge without a realm as one with an empty realm', () => {
    expect(answerChallenge(`nonce="${nonce}"`, bob, clientNonce)).toEqual(
      answerChallenge(`nonce="${nonce}",realm=""`, bob, clientNonce),
    );
  });

  test('quotes what has quotes in it, both ways', () => {
    const token = tokenOf('nonce="a\\"b\\\\c",realm="r"', { username: 'o"neil\\', password: 'p' }, 'n');
    expect(token).toContain('nonce="a\\"b\\\\c"');
    expect(token).toContain('username="o\\"neil\\\\"');
    expect(token).toContain('authzid="o\\"neil\\\\"');
  });

  /** As the JDK computes it (`com.sun.security.sasl.digest`), which is what a ZooKeeper server runs. */
  test.each([
    ['user', { username: '日本', password: 'pw' }, 'a1ad8b943a5eeb43b0d00a426da7a5ca'],
    ['password', { username: 'bob', password: '日本' }, '518174bfb25497f3216a0122fba241eb'],
  ])('has a %s of another alphabet in UTF-8', (_, credentials, response) => {
    const token = tokenOf(challenge, credentials, clientNonce);
    expect(token).toContain(`username="${credentials.username}"`);
    expect(directive(token, 'response')).toBe(response);
  });

  test.each([
    ['jürgen', 'pw', '2f4c681137eac12d122c9934598a556b', '4bebe7f6f75fa5dacbbe52928602022b'],
    ['bob', 'pässword', 'ac600c184fcf94f36afd5614e7fdd07d', '0d2b8344018b636014df6dceecdf1226'],
    ['jürgen日', 'pä', 'be81e0286c2f7aecdd66b06709979a7e', '40a5a683b24a91a4824f42af77a847f6'],
  ])(
    'hashes %s and %s in Latin-1 where that is enough, as the JDK does',
    (username, password, response, rspauth) => {
      const { token, proof } = answerChallenge(challenge, { username, password }, clientNonce);
      expect(directive(token.toString('utf8'), 'response')).toBe(response);
      expect(proof).toBe(`rspauth=${rspauth}`);
    },
  );

  test.each([
    ['bytes without a directive', 'a'.repeat(2048)],
    ['a long nonce', `nonce="${'a'.repeat(2048)}"`],
  ])('is not given to a challenge of 2048 bytes or more: %s', (_, text) => {
    expect(() => answerChallenge(text, bob, clientNonce)).toThrow(/2048/);
    expect(() => answerChallenge(text, bob, clientNonce)).toThrow(ProtocolError);
  });

  test.each([
    ['nothing', ''],
    ['text of another protocol', 'HTTP/1.1 400 Bad Request'],
    ['a challenge without a nonce', 'realm="zk-sasl-md5",charset=utf-8'],
    ['a proof instead of a challenge', 'rspauth=57021f5daa2208ba96074d79f76438c3'],
    ['commas', ',,,,'],
  ])('is not given to %s', (_, text) => {
    expect(() => answerChallenge(text, bob, clientNonce)).toThrow(ProtocolError);
    expect(() => answerChallenge(text, bob, clientNonce)).toThrow('sasl: the challenge has no nonce');
  });
});
