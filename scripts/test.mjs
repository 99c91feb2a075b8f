// `npm test`: sets up what is missing, then checks, builds and runs every suite.
import { spawn } from 'node:child_process';
import { installNpmPackages, installServers, root, run } from './setup.mjs';

const vitest = ['node_modules/.bin/vitest', 'run'];
const suites = [...vitest, '--project', 'unit', '--project', 'servers', ...process.argv.slice(2)];
// The simulation has what the others leave of the machine, from the beginning to the end.
const simulation = ['nice', '-n', '19', 'node_modules/.bin/tsx', 'scripts/simulation/main.ts'];
const children = new Set();

installNpmPackages();
installServers();
run('node', ['scripts/check.mjs']);
if (process.argv.length > 2) await succeed(suites);
else await Promise.all([succeed([...simulation, '--seeds', '8000', '--all-points']), runSuites()]);

/** kazoo's suite mostly waits, but must not be kept waiting; the nemesis can bear more than that. */
async function runSuites() {
  await succeed(suites);
  await Promise.all([
    succeed([...vitest, '--project', 'kazoo']),
    succeed(['nice', '-n', '5', ...vitest, '--project', 'nemesis']),
  ]);
}

/** Resolves when the command has succeeded; ends everything if it has not. */
function succeed([command, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit' });
    children.add(child);
    const over = (code) => {
      children.delete(child);
      if (code === 0) return resolve();
      for (const other of children) other.kill();
      process.exit(code ?? 1);
    };
    child.on('error', (error) => {
      console.error(error);
      over(1);
    });
    child.on('exit', over);
  });
}
