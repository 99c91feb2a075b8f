import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startServer } from '../../src/server/start-server.ts';
import { runProgram } from './run-program.ts';

const CLASS_PATH = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'zookeeper',
  'guava',
  'slf4j-nop',
]
  .map((jar) => `/usr/share/java/${jar}.jar`)
  .join(':');
const CHECK_COUNT = 9;

test("Curator's recipes keep their promises on the embedded server", { timeout: 120_000 }, async () => {
  await using server = await startServer({
    limits: { tickMs: 500, sessionTimeoutMsMin: 1_000, reapMs: 200 },
  });
  const driver = fileURLToPath(new URL('curator/CuratorDriver.java', import.meta.url));
  const { code, stdout, stderr } = await runProgram(
    'java',
    [
      '-Xmx256m',
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-cp',
      CLASS_PATH,
      driver,
      server.connectString,
    ],
    { timeoutMs: 110_000 },
  );
  const lines = stdout.trimEnd().split('\n');
  expect(
    lines.filter((line) => !line.startsWith('ok\t')),
    `${stdout}\n${stderr}`,
  ).toEqual([]);
  expect(lines, stderr).toHaveLength(CHECK_COUNT);
  expect(code, stderr).toBe(0);
});
