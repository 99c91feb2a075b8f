import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const peersFolder = fileURLToPath(new URL('.', import.meta.url));

/** Installs the other libraries for Node beside their package.json, if they are not there in those versions. */
export function installPeers(): void {
  const wanted = JSON.parse(readFileSync(`${peersFolder}package.json`, 'utf8')).dependencies as Record<
    string,
    string
  >;
  if (Object.entries(wanted).every(([name, version]) => installedVersion(name) === version)) return;
  console.error('bench: installing the other libraries');
  const { status } = spawnSync(
    'npm',
    ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'],
    { cwd: peersFolder, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  if (status !== 0) throw new Error(`npm install in bench/peers ended with ${status}`);
}

function installedVersion(name: string): string | undefined {
  const file = `${peersFolder}node_modules/${name}/package.json`;
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version.replace(/^v/, '') : undefined;
}
