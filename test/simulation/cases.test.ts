// What the simulation has found before: each case is the smallest that showed a bug, and must never fail again.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Scenario } from '../../simulation/scenario/scenario.ts';
import { outcomeOf } from './in-macrotask.ts';

const FOLDER = new URL('cases/', import.meta.url);

interface Case {
  readonly about: string;
  /** The property that was violated. */
  readonly property: string;
  readonly scenario: Scenario;
}

describe('what was found before', () => {
  const files = readdirSync(FOLDER);

  test('is kept', () => expect(files.length).toBeGreaterThan(0));

  for (const file of files) {
    const { about, property, scenario }: Case = JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'));
    test(`${file} stays mended: ${about} (${property})`, async () => {
      const { violation, grantCount } = await outcomeOf(scenario);
      expect(violation).toBeUndefined();
      expect(grantCount).toBeGreaterThan(0);
    });
  }
});
