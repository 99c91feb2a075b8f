// `npm start`: the guided tour, on a fresh clone too. Installs npm packages and builds, if need be; needs nothing else.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { installNpmPackages, run } from './setup.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const command = `${root}dist/cli/main.js`;

installNpmPackages();
if (!isBuilt()) {
  console.log('start: building');
  run(process.execPath, ['scripts/build.mjs']);
}
const args = process.argv.length > 2 ? process.argv.slice(2) : ['demo', 'tour'];
// Ctrl-C goes to both: the tour tidies up and ends, and this one with it.
process.on('SIGINT', () => {});
const { status } = spawnSync(process.execPath, [command, ...args], { stdio: 'inherit' });
process.exit(status ?? 1);

/** Whether what was built is newer than all it was built from. */
function isBuilt() {
  if (!existsSync(command)) return false;
  const builtAtMs = statSync(command).mtimeMs;
  const sources = readdirSync(`${root}src`, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath ?? entry.path}/${entry.name}`);
  const inputs = [
    ...sources,
    `${root}package.json`,
    `${root}tsconfig.json`,
    `${root}tsconfig.build.json`,
    `${root}scripts/build.mjs`,
  ];
  return inputs.every((file) => statSync(file).mtimeMs <= builtAtMs);
}
