import { describe, expect, test } from 'vitest';
import { story } from './compare.ts';
import { knownDifferences } from './known-differences.ts';
import { runScenarios, startBoth } from './run-scenarios.ts';

const SCENARIOS = 500;
const FIRST_SEED = 1;
const TEST_TIMEOUT_MS = 180_000;

describe('the embedded server', () => {
  test(
    'answers what ZooKeeper answers, in the same order, whatever is asked',
    async () => {
      await using servers = await startBoth();
      const { differences, scenarios } = await runScenarios(servers, {
        firstSeed: FIRST_SEED,
        scenarios: SCENARIOS,
        differencesMax: 3,
      });
      expect(differences.map(story).join('\n\n')).toBe('');
      expect(scenarios).toBe(SCENARIOS);
    },
    TEST_TIMEOUT_MS,
  );

  test('differs on purpose in a few points, each for a reason', () => {
    // Each new difference has to raise this by hand. The eleventh is a session's password, checked before its connection.
    // The twelfth closes a leak: setWatches reported changes of nodes that may not be read.
    expect(knownDifferences.length).toBeLessThanOrEqual(12);
    for (const { what, why } of knownDifferences) expect(what).not.toBe(why);
  });
});
