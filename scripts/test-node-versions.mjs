// `npm run test:node-versions`: the whole suite on other versions of Node, each taken from npm's `node` package
// into a temporary folder. Say which as arguments: `npm run test:node-versions -- 22 24`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installNpmPackages, installServers, run } from './setup.mjs';

const versions = process.argv.length > 2 ? process.argv.slice(2) : ['22', '24', '26'];

installNpmPackages();
installServers();
run('npm', ['run', '--silent', 'build']);

const results = versions.map((version) => {
  const folder = mkdtempSync(join(tmpdir(), `holdfast-node-${version}-`));
  try {
    // What npm's `node` package links to: the binary of this platform, which can be had by name.
    const name = `node-${process.platform}-${process.arch}`;
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder];
    spawnSync('npm', ['install', ...flags, `${name}@${version}`], { stdio: 'ignore' });
    const node = join(folder, 'node_modules', name, 'bin', 'node');
    const found = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.trim();
    if (!found) return { version, outcome: 'cannot be had from npm on this platform' };
    console.log(`node ${found}`);
    const env = { ...process.env, PATH: `${join(node, '..')}:${process.env.PATH}` };
    const { status } = spawnSync(
      node,
      ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', '--project', 'servers'],
      { stdio: 'inherit', env },
    );
    return { version: found, outcome: status === 0 ? 'passed' : `failed (${status})` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

for (const { version, outcome } of results) console.log(`node ${version}: ${outcome}`);
if (results.some(({ outcome }) => outcome !== 'passed')) process.exit(1);
