// The test suite of kazoo, the Python client, as Debian ships it, run against our server: each server it would start
// is ours, by the script java-shim/java; some tests restart it and expect their session back. It takes about two
// minutes, most of which it waits.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { freePorts } from '../support/free-port.ts';
import { runProgram } from './run-program.ts';

const SUITE_TIMEOUT_MS = 400_000;
/** One test of the suite may block for ever when it fails, so each has a limit. */
const TEST_TIMEOUT_S = 40;

/** What is left out, by what its name contains, how many tests that is, and why. */
const leftOut = {
  ensembleNeeded: [
    { name: 'test_update_host_list', count: 3, reason: 'moves between the servers of an ensemble' },
    {
      name: 'TestReconfig',
      count: 3,
      reason: 'reconfigures an ensemble; fails on a standalone ZooKeeper too',
    },
    { name: 'TestReadOnlyMode', count: 1, reason: 'stops a majority of an ensemble' },
  ],
  notOffered: [
    { name: 'test_connect_sasl_auth', count: 2, reason: 'logs in by SASL, which there is none of' },
  ],
};

/** What is run and may fail, since it does so on ZooKeeper 3.8 itself, and why. */
const mayFail = [
  { name: 'test_request_queuing_session_expired', reason: '2 of 18 runs on ZooKeeper failed' },
  {
    name: 'TestSemaphore.test_handle_session_loss',
    reason: 'waits for an event that is set and cleared; coming late it waits for ever, on ZooKeeper too',
  },
];

/** Skipped by the suite itself: one of its own build, two that want Kerberos. */
const SKIPPED_COUNT = 3;
/** Passed on ZooKeeper 3.8, with the same tests left out; fewer would mean that not all were found. */
const PASSED_COUNT_ON_ZOOKEEPER = 467;

test('what passes on ZooKeeper passes on the embedded server', { timeout: SUITE_TIMEOUT_MS }, async () => {
  const deselected = Object.values(leftOut).flat();
  const { failed, counts, report } = await runSuite(deselected.map(({ name }) => name));
  expect(
    failed.filter((id) => !mayFail.some(({ name }) => id.includes(name))),
    report,
  ).toEqual([]);
  expect(counts.deselected, report).toBe(deselected.reduce((sum, { count }) => sum + count, 0));
  expect(counts.skipped, report).toBe(SKIPPED_COUNT);
  expect(counts.passed + failed.length, report).toBe(PASSED_COUNT_ON_ZOOKEEPER);
});

async function runSuite(deselected: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kazoo-'));
  try {
    const xmlFile = join(folder, 'report.xml');
    const [port] = await freePorts(1);
    // Debian's Python by its full name: another one that comes first on the PATH does not have these packages.
    const { stdout, stderr } = await runProgram(
      '/usr/bin/python3',
      [
        ...['-m', 'pytest', '--pyargs', 'kazoo.tests', '-q', '-p', 'no:cacheprovider'],
        ...[`--timeout=${TEST_TIMEOUT_S}`, `--junitxml=${xmlFile}`, '--tb=short', '--show-capture=no'],
        ...['-W', 'ignore', '-k', deselected.map((name) => `not ${name}`).join(' and ')],
      ],
      {
        folder,
        timeoutMs: SUITE_TIMEOUT_MS - 10_000,
        environment: {
          PATH: [
            fileURLToPath(new URL('java-shim', import.meta.url)),
            dirname(process.execPath),
            process.env['PATH'],
          ].join(delimiter),
          // Nothing is left in the folders of Debian's packages.
          PYTHONDONTWRITEBYTECODE: '1',
          ZOOKEEPER_CLUSTER_SIZE: '1',
          ZOOKEEPER_PATH: '/usr/share/java',
          ZOOKEEPER_PORT_OFFSET: String(port),
          ZOOKEEPER_VERSION: '3.8.0',
        },
      },
    );
    const report = `${stdout.slice(-8_000)}\n${stderr.slice(-2_000)}`;
    const xml = await readFile(xmlFile, 'utf8').catch(() => {
      throw new Error(`the suite left no report:\n${report}`);
    });
    const summary =
      stdout
        .trimEnd()
        .split('\n')
        .findLast((line) => / passed| failed/.test(line)) ?? '';
    const count = (what: string) => Number(new RegExp(`(\\d+) ${what}`).exec(summary)?.[1] ?? 0);
    return {
      failed: failedTests(xml),
      counts: { passed: count('passed'), skipped: count('skipped'), deselected: count('deselected') },
      report,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Of a JUnit report, the names of the tests that failed or broke. */
function failedTests(xml: string): string[] {
  const cases = [...xml.matchAll(/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)];
  return cases
    .filter(([, , body]) => body !== undefined && /<(failure|error)\b/.test(body))
    .map(([, attributes]) => {
      const attribute = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes!)?.[1];
      return `${attribute('classname')}.${attribute('name')}`;
    });
}
