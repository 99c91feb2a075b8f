import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const root = new URL('../..', import.meta.url).pathname;
const bin = (name: string) => join(root, 'node_modules/.bin', name);

let folder: string;
let tarball: string;
let files: string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-package-'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root });
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  tarball = join(folder, packed.filename);
  files = packed.files.map(({ path }) => path);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the package', () => {
  test('holds what is built and nothing else', () => {
    const extra = files.filter((path) => !/^dist\/[\w./-]+\.(js|js\.map|d\.ts)$/.test(path));
    expect(extra.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']);
    expect(files.filter((path) => path.includes('.test'))).toEqual([]);
    expect(files.filter((path) => /simulat|checker/.test(path))).toEqual([]);
  });

  test('is well-formed by publint, and its types resolve by attw', async () => {
    await run(bin('publint'), ['run', tarball, '--strict']);
    await run(bin('attw'), [tarball, '--profile', 'esm-only']);
  });

  test('brings along what its command needs and no more, and is loaded by import and by require', async () => {
    const project = join(folder, 'project');
    await run('mkdir', [project]);
    await writeFile(join(project, 'package.json'), '{ "name": "user", "private": true, "type": "module" }');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball], {
      cwd: project,
    });
    const list = await run('npm', ['ls', '--all', '--json'], { cwd: project });
    const { dependencies } = JSON.parse(list.stdout);
    expect(Object.keys(dependencies)).toEqual(['holdfast']);
    const below: Record<string, { version?: string }> = dependencies.holdfast.dependencies ?? {};
    const brought = Object.keys(below).filter((name) => below[name]!.version !== undefined);
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    expect(brought).toEqual(Object.keys(manifest.dependencies ?? {}).sort());
    // An optional peer that is not there is missed by its own door, and by no other.
    await writeFile(join(project, 'peer.mjs'), "await import('holdfast/opentelemetry');");
    await expect(run(process.execPath, ['peer.mjs'], { cwd: project })).rejects.toThrow('@opentelemetry/api');
    const doors = "for (const door of ['holdfast/zookeeper', 'holdfast/server', 'holdfast/testing']) ";
    const print = 'console.log(Object.keys(m).length > 0);';
    await writeFile(join(project, 'esm.mjs'), `${doors}{ const m = await import(door); ${print} }`);
    await writeFile(join(project, 'cjs.cjs'), `${doors}{ const m = require(door); ${print} }`);
    for (const file of ['esm.mjs', 'cjs.cjs']) {
      const { stdout } = await run(process.execPath, ['--no-warnings', file], { cwd: project });
      expect(stdout).toBe('true\n'.repeat(3));
    }
  });
});
