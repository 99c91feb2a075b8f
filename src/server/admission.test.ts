import { describe, expect, test } from 'vitest';
import { Admission } from './admission.ts';

const LIMITS = { connectionsMax: 5, connectionsPerAddressMax: 2, connectionsPerLoopbackMax: 3 };

describe('admission', () => {
  test('is for so many of one address, and more of this machine', () => {
    const admission = new Admission(LIMITS);
    const leave = admission.enter('10.0.0.1');
    expect(admission.enter('10.0.0.1')).toBeDefined();
    expect(admission.enter('10.0.0.1')).toBeUndefined();
    for (let index = 0; index < 3; index++) expect(admission.enter('127.0.0.1')).toBeDefined();
    leave!();
    expect(admission.enter('127.0.0.1')).toBeUndefined();
    expect(admission.enter('10.0.0.1')).toBeDefined();
  });

  test('is for so many in all', () => {
    const admission = new Admission(LIMITS);
    for (const address of ['a', 'b', 'c', 'd', '::1']) expect(admission.enter(address)).toBeDefined();
    expect(admission.enter('e')).toBeUndefined();
    expect(admission.count).toBe(5);
  });

  test('takes a place back once, and forgets an address that has none', () => {
    const admission = new Admission(LIMITS);
    const leaves = [admission.enter('a')!, admission.enter('a')!];
    leaves[0]!();
    leaves[0]!();
    expect(admission.count).toBe(1);
    leaves[1]!();
    expect(admission.count).toBe(0);
    expect(admission.addressCount).toBe(0);
  });
});
