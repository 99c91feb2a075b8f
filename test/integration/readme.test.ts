import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';

const run = promisify(execFile);
const root = new URL('../..', import.meta.url).pathname;

/** What the examples take for granted, and what they print. */
const examples = [
  { name: 'the first lock', marker: "from 'holdfast';", prelude: '', prints: 'true\n' },
  {
    name: 'the ten lines of the client',
    marker: "from 'holdfast/zookeeper'",
    prelude: '',
    prints: "[ 'job-0000000000' ]\n",
  },
  {
    name: 'the server in the same process',
    marker: "from 'holdfast/server'",
    prelude: "import { connect } from 'holdfast';\n",
    prints: '',
  },
];

test.each(examples)('the README’s example runs as it stands: $name', async ({ marker, prelude, prints }) => {
  const block = (await blocksOf('README.md')).find((code) => code.includes(marker));
  expect(await output(prelude + block!)).toBe(prints);
});

test('the README’s lines of shell run as they stand, with nothing configured, and print what they say', async () => {
  const block = (await blocksOf('README.md', 'sh')).find((code) => code.includes('holdfast run'))!;
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-readme-'));
  try {
    await writeFile(
      join(folder, 'holdfast'),
      `#!/bin/sh\nexec "${process.execPath}" "${root}dist/cli/main.js" "$@"\n`,
    );
    await chmod(join(folder, 'holdfast'), 0o755);
    const { NODE_ENV: _, HOLDFAST_SERVERS: __, ...surroundings } = process.env;
    const env = {
      ...surroundings,
      PATH: `${folder}:${process.env['PATH']}`,
      HOLDFAST_LOCAL_FOLDER: join(folder, 'state'),
    };
    const { stdout } = await run('bash', ['-c', block], { env, timeout: 60_000 });
    const said = [...block.matchAll(/# prints: (.*)$/gm)].map(([, text]) => text!);
    expect(said).toHaveLength(10);
    expect(stdout.trimEnd().split('\n')).toEqual(said);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 90_000);

test('the examples of docs/locks.md run as they stand, one after another, and print what they say', async () => {
  const blocks = await blocksOf('docs/locks.md');
  const [opening, ...others] = blocks as [string, ...string[]];
  const imports = new Set(others.flatMap((code) => code.match(/^import .*$/gm) ?? []));
  // Each in a scope of its own, with the connection of the first.
  const scoped = others.map((code) => `{\n${code.replaceAll(/^import .*$/gm, '')}}\n`);
  const said = others.flatMap((code) => [...code.matchAll(/\/\/ prints: (.*)$/gm)].map(([, text]) => text!));
  expect(said.length).toBeGreaterThan(10);
  const printed = await output([...imports, opening, ...scoped].join('\n'));
  expect(printed.trimEnd().split('\n')).toEqual(said);
});

async function blocksOf(document: string, language = 'ts'): Promise<string[]> {
  const text = await readFile(join(root, document), 'utf8');
  const blocks = [...text.matchAll(/```(\w+)\n([\s\S]*?)```/g)];
  return blocks.filter(([, of]) => of === language).map(([, , code]) => code!);
}

/** What a program prints that finds the package by its own name, as built, and a server behind the usual addresses. */
async function output(code: string): Promise<string> {
  await using server = await startServer();
  {
    await using admin = await connect(server.connectString);
    for (const path of ['/app', '/app/jobs', '/app/config', '/app/status']) await admin.create(path);
  }
  const folder = await mkdtemp(join(root, 'dist', 'readme-'));
  try {
    const file = join(folder, 'example.mts');
    await writeFile(file, code.replaceAll('zk1:2181,zk2:2181,zk3:2181', server.connectString));
    const { stdout } = await run(process.execPath, ['--import', 'tsx', file], { cwd: root });
    return stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
