// Makes a fresh clone on a fresh Debian machine ready: npm packages, and what the tests run against.
// Plain JavaScript with nothing but Node, since nothing else is there yet.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Debian packages of the servers and tools that tests talk to; see docs/testing.md. */
const DEBIAN_PACKAGES = [
  ...['default-jre-headless', 'zookeeper', 'openssl'],
  // Foreign clients: Java's compiler and Curator, ZooKeeper's C client, kazoo with what its own tests need.
  ...[
    'default-jdk-headless',
    'libcurator-recipes-java',
    'libcurator-framework-java',
    'libcurator-client-java',
  ],
  ...['zookeeper-bin', 'python3-kazoo', 'python3-pytest', 'python3-pytest-timeout', 'python3-mock'],
  'python3-objgraph',
  // Durability: the order of system calls, and disks to be cut off and filled up.
  ...['strace', 'e2fsprogs', 'mount'],
];

export function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

export function installNpmPackages() {
  if (existsSync(`${root}node_modules/.package-lock.json`) && sameLock()) return;
  console.log('setup: installing npm packages');
  // Not `npm ci`: it refuses a lock file made where binaries for other platforms could not be had.
  run('npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund']);
}

/** npm leaves a copy of the lock file it installed by; packages that are optional elsewhere are left out of it. */
function sameLock() {
  const wanted = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')).packages;
  const present = JSON.parse(readFileSync(`${root}node_modules/.package-lock.json`, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) => path === '' || optional || present[path]?.version === version,
  );
}

export function installServers() {
  const missing = DEBIAN_PACKAGES.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    console.error(`setup: the tests need these Debian packages: ${missing.join(' ')}`);
    console.error(`setup: install them, e.g. with  sudo apt-get install ${missing.join(' ')}`);
    process.exit(1);
  }
  console.log(`setup: installing ${missing.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  run('apt-get', ['update', '-qq'], { env });
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

function isInstalled(name) {
  const { stdout } = spawnSync('dpkg-query', ['-W', '-f', '$' + '{db:Status-Status}', name], {
    encoding: 'utf8',
  });
  return stdout === 'installed';
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  installNpmPackages();
  installServers();
}
