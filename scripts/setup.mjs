// Makes a fresh clone on a fresh Debian machine ready: npm packages, and what the tests run against.
// Plain JavaScript with nothing but Node, since nothing else is there yet.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

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
  // Resources behind a fence: test/examples.
  ...['postgresql', 'redis-server'],
  // Durability: the order of system calls, and disks to be cut off and filled up.
  ...['strace', 'e2fsprogs', 'mount'],
  // The completion of the command.
  'zsh',
];

/** While packages are installed, these keep them from starting services and making databases: tests start their own. */
const QUIET_FILES = [
  { path: '/usr/sbin/policy-rc.d', text: '#!/bin/sh\nexit 101\n', mode: 0o755 },
  {
    path: '/etc/postgresql-common/createcluster.d/holdfast-setup.conf',
    text: 'create_main_cluster = false\n',
    mode: 0o644,
  },
];

export function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

export function installNpmPackages() {
  if (existsSync(`${root}node_modules/.package-lock.json`) && sameLock()) return;
  console.log('setup: installing npm packages');
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
}

/** npm leaves a copy of the lock file it installed by; the binaries of other platforms are left out of it. */
function sameLock() {
  const wanted = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')).packages;
  const present = JSON.parse(readFileSync(`${root}node_modules/.package-lock.json`, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' || (optional && !present[path]) || present[path]?.version === version,
  );
}

export function installServers() {
  installDebianPackages('the tests', DEBIAN_PACKAGES);
}

/** Installs what is missing of these; where that cannot be done, says who needs it and ends the process. */
export function installDebianPackages(who, names) {
  const missing = names.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
    console.error(`setup: ${who} need these Debian packages: ${missing.join(' ')}`);
    console.error(`setup: install them, e.g. with  sudo apt-get install ${missing.join(' ')}`);
    process.exit(1);
  }
  console.log(`setup: installing ${missing.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const loud = keepQuiet();
  run('apt-get', ['update', '-qq'], { env });
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  loud();
}

/** Puts the quiet files where there are none, and returns what takes them away again; so does the end of the process. */
function keepQuiet() {
  const made = QUIET_FILES.filter(({ path }) => !existsSync(path));
  const takeAway = () => {
    for (const { path } of made) rmSync(path, { force: true });
  };
  process.once('exit', takeAway);
  for (const { path, text, mode } of made) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode });
  }
  return takeAway;
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
