import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startServer } from '../../src/server.ts';
import { connect } from '../../src/zookeeper.ts';

const run = promisify(execFile);
const root = new URL('../..', import.meta.url).pathname;

/** What the examples take for granted, and what they print. */
const examples = [
  { name: 'the ten lines', marker: "from 'holdfast/zookeeper'", prints: "[ 'job-0000000000' ]\n" },
  { name: 'the server in the same process', marker: "from 'holdfast/server'", prints: '' },
];

test.each(examples)('the README’s example runs as it stands: $name', async ({ marker, prints }) => {
  const readme = await readFile(join(root, 'README.md'), 'utf8');
  const block = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)]
    .map(([, code]) => code!)
    .find((c) => c.includes(marker));
  await using server = await startServer();
  {
    await using admin = await connect(server.connectString);
    for (const path of ['/app', '/app/jobs', '/app/config', '/app/status']) await admin.create(path);
  }
  const imports = block!.includes("from 'holdfast/zookeeper'")
    ? ''
    : "import { connect } from 'holdfast/zookeeper';\n";
  const code = imports + block!.replace('zk1:2181,zk2:2181,zk3:2181', server.connectString);
  // Inside the project, so that the package is found by its own name, as built.
  const folder = await mkdtemp(join(root, 'dist', 'readme-'));
  try {
    await writeFile(join(folder, 'example.mts'), code);
    const { stdout } = await run(process.execPath, ['--import', 'tsx', join(folder, 'example.mts')], {
      cwd: root,
    });
    expect(stdout).toBe(prints);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
