import { describe, expect, test } from 'vitest';
import { planScenario, workloads } from '../scenario/plan-scenario.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { withoutOutsideWorld } from './forbidden-globals.ts';
import { type Outcome, runScenario } from './run-scenario.ts';

/** Where no promise reaction is running. */
function inMacrotask<T>(run: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        resolve(run());
      } catch (error) {
        reject(error);
      }
    });
  });
}

const outcomeOf = (scenario: Scenario): Promise<Outcome> => inMacrotask(() => runScenario(scenario));

describe('a simulated run', { timeout: 60_000 }, () => {
  for (const workload of workloads) {
    test(`keeps every promise, and repeats to the byte: ${workload}`, async () => {
      const scenario = planScenario(5, { workload });
      const first = await outcomeOf(scenario);
      expect(first.violation).toBeUndefined();
      expect(first.grantCount).toBeGreaterThan(0);
      expect(await outcomeOf(scenario)).toEqual(first);
    });
  }

  test('is another for another seed', async () => {
    const [one, other] = [planScenario(1, { workload: 'mutex' }), planScenario(2, { workload: 'mutex' })];
    expect((await outcomeOf(one)).digest).not.toBe((await outcomeOf(other)).digest);
  });

  test('survives being written down', async () => {
    const scenario = planScenario(7);
    const { digest } = await outcomeOf(scenario);
    expect((await outcomeOf(JSON.parse(JSON.stringify(scenario)))).digest).toBe(digest);
  });

  test('tells the story: who asked for what, over the wire and of the lock', async () => {
    const lines: string[] = [];
    const scenario = planScenario(5, { workload: 'mutex' });
    await inMacrotask(() => runScenario(scenario, { tell: (line) => lines.push(line) }));
    const story = lines.join('\n');
    expect(story).toMatch(/client-\d\/\d+ ──► create2 m\/[0-9a-f]{4}-lock-/);
    expect(story).toMatch(/\* granted attempt=client-\d#\d+/);
    expect(story).toMatch(/client-\d\/\d+ ◄── connected 0x/);
  });
});

describe('inside a simulation', () => {
  for (const [name, look] of [
    ['Date.now', () => Date.now()],
    ['performance.now', () => performance.now()],
    ['setTimeout', () => setTimeout(() => {}, 0)],
    ['setImmediate', () => setImmediate(() => {})],
    ['Math.random', () => Math.random()],
    ['crypto.randomUUID', () => crypto.randomUUID()],
    ['fetch', () => fetch('http://127.0.0.1:1')],
  ] as const) {
    test(`${name} throws, and works again afterwards`, () => {
      expect(() => withoutOutsideWorld<unknown>(look)).toThrow(/in a simulation/);
      expect(Date.now()).toBeGreaterThan(0);
      expect(performance.now()).toBeGreaterThan(0);
      expect(Math.random()).toBeLessThan(1);
    });
  }
});
