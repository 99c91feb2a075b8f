// `npm run test:long`: the suites of `npm test` that have a long form, in that form. Minutes each, one after the other,
// since each needs the machine for itself.
import { installNpmPackages, run } from './setup.mjs';

/** Each with the test file and the variables that make it long. */
const LONG_SUITES = [
  {
    name: 'distinct names',
    file: 'test/locks/distinct-names.test.ts',
    env: { HOLDFAST_DISTINCT_NAMES: '1000000' },
  },
  {
    name: 'requests of every length',
    file: 'test/locks/request-bytes.test.ts',
    env: { HOLDFAST_REQUEST_BYTES_SCENES: '300' },
  },
  {
    name: 'stalls of the server',
    file: 'test/hostile/dear-requests.test.ts',
    env: { HOLDFAST_STALL_MS: '60000' },
  },
];

installNpmPackages();
const chosen = process.argv.slice(2);
for (const { name, file, env } of LONG_SUITES) {
  if (chosen.length > 0 && !chosen.some((part) => file.includes(part))) continue;
  console.log(`${name}: ${JSON.stringify(env)}`);
  run('node_modules/.bin/vitest', ['run', '--project', 'servers', file], {
    env: { ...process.env, ...env },
  });
}
