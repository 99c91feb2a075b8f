// Numbers that are others in the simulation: its lives are short, and what begins only after a while would never be met.
import type { Patch } from './compile.ts';

const tuning = (file: string, find: string, replace: string): Patch => ({
  name: `tuning of "${find}"`,
  file: `src/${file}`,
  find,
  replace,
});

export const tunings: readonly Patch[] = [
  tuning('queue/lone-joins.ts', 'const RUN_MIN = 4;', 'const RUN_MIN = 1;'),
  tuning('queue/lone-joins.ts', 'const RUN_MAX = 1_024;', 'const RUN_MAX = 1;'),
  tuning('queue/batched-writes.ts', 'const EARLY_MIN = 16;', 'const EARLY_MIN = 2;'),
  tuning('queue/neighbours.ts', 'const FOLLOWERS_MAX = 256;', 'const FOLLOWERS_MAX = 2;'),
  tuning('queue/pass-on.ts', 'const CHECKS_MAX = 128;', 'const CHECKS_MAX = 1;'),
  tuning('queue/second-opinion.ts', 'const CHECKS_MAX = 300;', 'const CHECKS_MAX = 1;'),
];
