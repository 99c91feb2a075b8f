import { expect, test } from 'vitest';
import { startServer } from '../../src/server/start-server.ts';
import { javaArguments } from './java-program.ts';
import { runProgram } from './run-program.ts';

const CHECK_COUNT = 9;

test("Curator's recipes keep their promises on the embedded server", { timeout: 120_000 }, async () => {
  await using server = await startServer({
    limits: { tickMs: 500, sessionTimeoutMsMin: 1_000, reapMs: 200 },
  });
  const driver = await javaArguments(new URL('curator/CuratorDriver.java', import.meta.url));
  const { code, stdout, stderr } = await runProgram('java', [...driver, server.connectString], {
    timeoutMs: 110_000,
  });
  const lines = stdout.trimEnd().split('\n');
  expect(
    lines.filter((line) => !line.startsWith('ok\t')),
    `${stdout}\n${stderr}`,
  ).toEqual([]);
  expect(lines, stderr).toHaveLength(CHECK_COUNT);
  expect(code, stderr).toBe(0);
});
