import { describe, expect, test } from 'vitest';
import type { Acl } from '../protocol/records.ts';
import { digestIdentity, type Identity, isAllowed, maskDigests, normalizeAcl, userNameOf } from './access.ts';
import { refusalOf } from './refusal-of.test-data.ts';

const IP: Identity = { scheme: 'ip', id: '127.0.0.1' };
const ann = digestIdentity('ann:secret');
const bob = digestIdentity('bob:hidden');
const entry = (scheme: string, id: string | null, perms = 31): Acl => ({ perms, id: { scheme, id } });
const WORLD = entry('world', 'anyone');

describe('an identity of scheme digest', () => {
  test.each([
    ['u:p', 'u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ='],
    ['super:admin', 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs='],
  ])('is the hash of the whole text: %s', (credentials, id) => {
    expect(digestIdentity(credentials)).toEqual({ scheme: 'digest', id });
  });

  test('is called by what is before the first colon', () => {
    expect(userNameOf(ann)).toBe('ann');
    expect(userNameOf(IP)).toBe('127.0.0.1');
  });
});

describe('an access list', () => {
  test.each<[string, readonly Acl[], number, readonly Identity[], boolean]>([
    ['nobody listed: open', [], 1, [IP], true],
    ['the world', [WORLD], 1, [IP], true],
    ['the world, for other things', [entry('world', 'anyone', 2)], 1, [IP], false],
    ['one of several permissions will do', [entry('world', 'anyone', 16)], 17, [IP], true],
    ['a user', [entry('digest', ann.id)], 1, [IP, ann], true],
    ['another user', [entry('digest', ann.id)], 1, [IP, bob], false],
    ['the super user', [entry('digest', ann.id)], 1, [IP, { scheme: 'super', id: '' }], true],
    ['an address', [entry('ip', '127.0.0.1')], 1, [IP], true],
    ['an address range', [entry('ip', '127.0.0.0/8')], 1, [IP], true],
    ['every address', [entry('ip', '0.0.0.0/0')], 1, [IP], true],
    ['another range', [entry('ip', '10.0.0.0/8')], 1, [IP], false],
    ['the same text in another scheme', [entry('ip', ann.id)], 1, [IP, ann], false],
  ])('decides: %s', (_case, acl, wanted, identities, allowed) => {
    expect(isAllowed(acl, wanted, identities)).toBe(allowed);
  });

  test.each<[string, readonly Acl[] | null, string]>([
    ['null', null, 'invalid-acl'],
    ['empty', [], 'invalid-acl'],
    ['another world', [entry('world', 'someone')], 'invalid-acl'],
    ['auth without anybody authenticated', [entry('auth', '')], 'invalid-acl'],
    ['a scheme nobody knows', [entry('nonsense', 'x')], 'invalid-acl'],
    ['a digest without a colon', [entry('digest', 'ann')], 'invalid-acl'],
    ['a digest without a hash', [entry('digest', 'ann:')], 'invalid-acl'],
    ['a digest of three parts', [entry('digest', 'a:b:c')], 'invalid-acl'],
    ['half an address', [entry('ip', '1.2.3')], 'invalid-acl'],
    ['too many bits', [entry('ip', '1.2.3.4/33')], 'invalid-acl'],
    ['a null where the world is', [entry('world', null)], 'marshalling-error'],
    ['a null where a digest is', [entry('digest', null)], 'marshalling-error'],
    ['a null where an address is', [entry('ip', null)], 'marshalling-error'],
    ['a null in a scheme nobody knows', [entry('nonsense', null)], 'invalid-acl'],
    ['one bad entry among good ones', [WORLD, entry('ip', 'x')], 'invalid-acl'],
  ])('is refused: %s', (_case, acl, condition) => {
    expect(refusalOf(() => normalizeAcl(acl, [IP]))).toBe(condition);
  });

  test.each(['ann:hash', ':hash', 'ann:hash:'])('may name the digest %s', (id) => {
    expect(normalizeAcl([entry('digest', id)], [IP])).toEqual([entry('digest', id)]);
  });

  test('is stored without duplicates, in its order', () => {
    const acl = [entry('world', 'anyone', 1), entry('ip', '127.0.0.1'), entry('world', 'anyone', 1), WORLD];
    expect(normalizeAcl(acl, [IP])).toEqual([acl[0], acl[1], WORLD]);
  });

  test('names whoever is authenticated where it says auth, whatever id came with it', () => {
    const expected = [entry('digest', ann.id, 5), entry('digest', bob.id, 5)];
    for (const id of ['', 'anything', null]) {
      expect(normalizeAcl([entry('auth', id, 5)], [IP, ann, bob])).toEqual(expected);
    }
  });

  test('keeps a duplicate that only auth made', () => {
    const own = entry('digest', ann.id);
    expect(normalizeAcl([own, entry('auth', '')], [IP, ann])).toEqual([own, own]);
  });

  test('hides the hash and not the user', () => {
    const acl = [WORLD, entry('digest', 'ann:hash', 3)];
    expect(maskDigests(acl)).toEqual([WORLD, entry('digest', 'ann:x', 3)]);
  });
});
