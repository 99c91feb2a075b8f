import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Somebody else's suite, two minutes long, most of which it waits: begun first, beside everything else. */
const KAZOO_SUITE = 'test/foreign-clients/kazoo-suite.test.ts';

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isKazoo = ({ moduleId }: TestSpecification) => moduleId.endsWith(KAZOO_SUITE);
    return [...sorted.filter(isKazoo), ...sorted.filter((file) => !isKazoo(file))];
  }
}

const common = { pool: 'forks' as const, restoreMocks: true };

/** One project per suite of docs/testing.md; the servers are started once for all of them. */
export default defineConfig({
  oxc: { target: 'es2022' },
  test: {
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { ...common, name: 'unit', include: ['src/**/*.test.ts'] } },
      {
        extends: true,
        test: {
          ...common,
          name: 'servers',
          include: ['test/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
