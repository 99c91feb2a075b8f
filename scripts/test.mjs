// `npm test`: sets up what is missing, then checks, builds and runs every suite.
import { spawn } from 'node:child_process';
import { installNpmPackages, installServers, root, run } from './setup.mjs';

installNpmPackages();
installServers();
run('node', ['scripts/check.mjs']);
const suites = ['--project', 'unit', '--project', 'servers'];
run('node_modules/.bin/vitest', ['run', ...suites, ...process.argv.slice(2)]);
if (process.argv.length === 2) {
  // kazoo's suite mostly waits, but must not be kept waiting; the nemesis can bear more than that, and the simulation
  // has what is left of the machine.
  await together(
    ['node_modules/.bin/vitest', 'run', '--project', 'kazoo'],
    ['nice', '-n', '5', 'node_modules/.bin/vitest', 'run', '--project', 'nemesis'],
    [
      'nice',
      '-n',
      '19',
      'node_modules/.bin/tsx',
      'simulation/runner/main.ts',
      '--seeds',
      '8000',
      '--all-points',
    ],
  );
}

/** Runs commands side by side, each to its end; ends with the first that failed. */
async function together(...commands) {
  const codes = await Promise.all(
    commands.map(
      ([command, ...args]) =>
        new Promise((resolve) => {
          const child = spawn(command, args, { cwd: root, stdio: 'inherit' });
          child.on('error', (error) => {
            console.error(error);
            resolve(1);
          });
          child.on('exit', (code) => resolve(code ?? 1));
        }),
    ),
  );
  const failed = codes.find((code) => code !== 0);
  if (failed !== undefined) process.exit(failed);
}
