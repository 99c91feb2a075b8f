// Tokens only grow: whatever happens to the lock's folder, its counter and its server.
import { describe, expect, test } from 'vitest';
import type { Fault, PlannedLock } from '../../simulation/scenario/scenario.ts';
import { outcomeOf } from './in-macrotask.ts';
import { smallWorld, taking } from './small-world.ts';

const GRANTS = 1_000;
const RESTARTS = 10;

describe('tokens', () => {
  test('grow over a thousand grants, fifty folders and ten restarts', { timeout: 120_000 }, async () => {
    const lock: PlannedLock = { name: 'm', recipe: 'mutex' };
    const steps = Array.from({ length: GRANTS }, () => taking(lock, { holdMs: 0, afterMs: 3, act: 'fence' }));
    const faults: Fault[] = [
      ...Array.from(
        { length: 1_000 },
        (_, index) => ({ kind: 'remove-folder', atMs: 220 + index * 11, lock: 'm' }) as const,
      ),
      ...Array.from(
        { length: RESTARTS },
        (_, index) => ({ kind: 'crash', atMs: 500 + index * 900, forMs: 60 }) as const,
      ),
    ];
    let folderCount = 0;
    const outcome = await outcomeOf(smallWorld([lock], [steps], { faults }), (line) => {
      if (/◄── createContainer m: ok/.test(line)) folderCount++;
    });
    expect(outcome.violation).toBeUndefined();
    expect(folderCount).toBeGreaterThanOrEqual(50);
    const tokens = outcome.history.flatMap((event) => (event.kind === 'granted' ? [event.token] : []));
    expect(tokens.length).toBeGreaterThanOrEqual(GRANTS);
    for (const [index, token] of tokens.entries()) {
      if (index > 0) expect(token > tokens[index - 1]!).toBe(true);
    }
    const crashes = outcome.history.filter((event) => event.kind === 'fault-began' && event.what === 'crash');
    expect(crashes).toHaveLength(RESTARTS);
  });

  test('grow where the counter has come to its end, and all contenders get the same number', async () => {
    const lock: PlannedLock = { name: 'm', recipe: 'mutex', firstSequence: 2 ** 31 - 5 };
    const steps = Array.from({ length: 20 }, () => taking(lock, { act: 'fence' }));
    const { violation, history } = await outcomeOf(smallWorld([lock], [steps, steps, steps]));
    expect(violation).toBeUndefined();
    const tokens = history.flatMap((event) => (event.kind === 'granted' ? [event.token] : []));
    expect(tokens.length).toBeGreaterThanOrEqual(60);
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
  });
});
