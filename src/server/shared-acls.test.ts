import { describe, expect, test } from 'vitest';
import type { Acl } from '../protocol/records.ts';
import { SharedAcls } from './shared-acls.ts';

const entry = (perms: number, scheme: string, id: string | null): Acl => ({ perms, id: { scheme, id } });

describe('shared access lists', () => {
  test('are one list if they are equal', () => {
    const acls = new SharedAcls();
    const first = acls.share([entry(31, 'world', 'anyone'), entry(1, 'ip', '10.0.0.1')]);
    expect(acls.share([entry(31, 'world', 'anyone'), entry(1, 'ip', '10.0.0.1')])).toBe(first);
  });

  test.each<[string, Acl[]]>([
    ['other permissions', [entry(30, 'world', 'anyone')]],
    ['another scheme', [entry(31, 'auth', 'anyone')]],
    ['another id', [entry(31, 'world', 'nobody')]],
    ['no id', [entry(31, 'world', null)]],
    ['one entry more', [entry(31, 'world', 'anyone'), entry(31, 'world', 'anyone')]],
    ['no entry', []],
  ])('are two lists with %s', (_, other) => {
    const acls = new SharedAcls();
    acls.share([entry(31, 'world', 'anyone')]);
    expect(acls.share(other)).toBe(other);
    expect(acls.share([...other])).toBe(other);
  });

  test('are remembered only if they are among the latest', () => {
    const acls = new SharedAcls();
    const first = acls.share([entry(31, 'ip', '10.0.0.0')]);
    for (let host = 1; host < 8; host++) acls.share([entry(31, 'ip', `10.0.0.${host}`)]);
    expect(acls.share([entry(31, 'ip', '10.0.0.0')])).toBe(first);
    acls.share([entry(31, 'ip', '10.0.0.8')]);
    expect(acls.share([entry(31, 'ip', '10.0.0.0')])).not.toBe(first);
  });
});
