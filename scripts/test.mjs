// `npm test`: sets up what is missing, then checks, builds and runs every suite.
import { installNpmPackages, installServers, run } from './setup.mjs';

installNpmPackages();
installServers();
run('node', ['scripts/check.mjs']);
run('node_modules/.bin/vitest', [
  'run',
  '--project',
  'unit',
  '--project',
  'servers',
  ...process.argv.slice(2),
]);
