import { defineConfig } from 'vitest/config';

/** Somebody else's suite, two minutes long, most of which it waits: by itself, since it has races under load. */
const KAZOO_SUITE = 'test/foreign-clients/kazoo-suite.test.ts';
/** By itself too: processes that are not run for want of a core would be one more fault. */
const NEMESIS = 'test/nemesis/nemesis.test.ts';
const common = { pool: 'forks' as const, restoreMocks: true };

/** One project per suite of docs/testing.md; the servers are started once for all of them. */
export default defineConfig({
  oxc: { target: 'es2022' },
  test: {
    maxWorkers: 3, // Most tests wait for servers most of the time.
    projects: [
      // A bound for what hangs, not for what is slow: they run beside suites that need both cores.
      {
        extends: true,
        test: {
          ...common,
          name: 'unit',
          include: ['src/**/*.test.ts', 'simulation/**/*.test.ts'],
          testTimeout: 30_000,
        },
      },
      {
        extends: true,
        test: {
          ...common,
          name: 'servers',
          include: ['test/**/*.test.ts'],
          exclude: [KAZOO_SUITE, NEMESIS],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      { extends: true, test: { ...common, name: 'kazoo', include: [KAZOO_SUITE] } },
      { extends: true, test: { ...common, name: 'nemesis', include: [NEMESIS] } },
    ],
  },
});
