// `npm test`: sets up what is missing, then checks, builds and runs every suite.
import { installNpmPackages, installServers, run } from './setup.mjs';

installNpmPackages();
installServers();
run('node', ['scripts/check.mjs']);
const suites = ['--project', 'unit', '--project', 'servers'];
run('node_modules/.bin/vitest', ['run', ...suites, ...process.argv.slice(2)]);
if (process.argv.length === 2) {
  // One after the other: each wants the machine for itself.
  run('node_modules/.bin/tsx', ['scripts/simulation/main.ts', '--seeds', '8000', '--all-points']);
  for (const project of ['kazoo', 'nemesis']) run('node_modules/.bin/vitest', ['run', '--project', project]);
}
