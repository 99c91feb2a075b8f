import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { LockRegistry } from './lock-registry.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

async function collectGarbage(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  await new Promise((resolve) => setImmediate(resolve)); // Finalizers run in a turn of their own.
}

const make = () => ({});

describe('the registry of lock objects', () => {
  test('keeps nothing of names that nothing refers to', async () => {
    const registry = new LockRegistry();
    const referred = registry.get(['mutex', 'referred'], make);
    for (let index = 0; index < 1_000; index++) registry.get(['mutex', `name-${index}`], make);
    expect(registry.size).toBe(1_001);
    await collectGarbage();
    expect(registry.size).toBe(1);
    expect(registry.get(['mutex', 'referred'], make)).toBe(referred);
  });

  test('keeps an object while a listener is registered on it', async () => {
    const registry = new LockRegistry();
    registry.setListenedTo(registry.get(['mutex', 'a'], make), true);
    await collectGarbage();
    expect(registry.size).toBe(1);
    registry.setListenedTo(registry.get(['mutex', 'a'], make), false);
    await collectGarbage();
    expect(registry.size).toBe(0);
  });

  test('keeps the new object of a name whose old one is finalized late', async () => {
    const registry = new LockRegistry();
    registry.get(['mutex', 'a'], make);
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    const made = registry.get(['mutex', 'a'], make); // Before the finalizer of the old one runs.
    await collectGarbage();
    expect(registry.get(['mutex', 'a'], make)).toBe(made);
  });
});
