// The example client that comes with ZooKeeper's C library, the same commands on the embedded server and a real one.
import { expect, test } from 'vitest';
import { startServer } from '../../src/server/start-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { until } from '../support/until.ts';
import { Program } from './run-program.ts';

const CLI = '/usr/lib/zookeeper/bin/cli_mt';
const ROOT = `/c-client-${process.pid}`;

/** Each command is given once the one before has been answered: the client does not wait by itself. Some have no answer. */
const CONVERSATION: readonly (readonly [command: string, answer?: RegExp])[] = [
  [`create ${ROOT}`, /name = .*\n/],
  [`create ${ROOT}`, /rc = -110/],
  [`create ${ROOT}/absent/child`, /rc = -101/],
  [`create +s ${ROOT}/n-`, /name = .*n-0000000000\n/],
  [`create +es ${ROOT}/n-`, /name = .*n-0000000001\n/],
  [`create2 ${ROOT}/two`, /name = .*two\n[\s\S]*ephemeralOwner/],
  [`set ${ROOT} abc`, /version=1[\s\S]*ephemeralOwner/],
  [`get ${ROOT}`, /abc[\s\S]*ephemeralOwner/],
  [`exists ${ROOT}`],
  [`exists ${ROOT}/absent`, /Error -101/],
  [`ls2 ${ROOT}/two`, /rc = 0\n[\s\S]*ephemeralOwner/],
  [`ls ${ROOT}/two`, /rc = 0\n[\s\S]*time =/],
  [`wexists ${ROOT}/two`],
  [`delete ${ROOT}/two`, /DELETED_EVENT[\s\S]*rc = 0|rc = 0[\s\S]*DELETED_EVENT/],
  [`delete ${ROOT}`, /rc = -111/],
  [`delete ${ROOT}/n-0000000000`, /rc = 0/],
  [`delete ${ROOT}/n-0000000001`, /rc = 0/],
  [`sync ${ROOT}`, /rc = 0\s+name = .*\n/],
  ['addauth digest ann:secret'],
  [`delete ${ROOT}`, /rc = 0/],
];

test('says the same on the embedded server and on ZooKeeper', { timeout: 60_000 }, async () => {
  await using embedded = await startServer({ limits: { tickMs: 500, sessionTimeoutMsMax: 60_000 } });
  const [ours, theirs] = await Promise.all([embedded, sharedStandalone()].map(converse));
  expect(ours).toEqual(theirs);
});

async function converse(server: { readonly connectString: string }): Promise<string[][]> {
  // Some answers go to standard output, which the C library holds back as long as it is a pipe: hence stdbuf.
  await using client = new Program('stdbuf', ['--output=L', CLI, server.connectString]);
  await until('a session', () => client.said.includes('Got a new session id'));
  const answers: string[][] = [];
  for (const [command, answer] of CONVERSATION) {
    const before = client.said.length;
    client.say(command);
    if (!answer) continue;
    await until(`${command} answered by ${answer}`, () => answer.test(client.said.slice(before)));
    answers.push([command, ...normalized(client.said.slice(before))]);
  }
  client.say('quit');
  expect((await client.result()).code).toBe(0);
  return answers;
}

/** Sorted, as callbacks and events are printed by two threads; without times and numbers of transactions. */
function normalized(text: string): string[] {
  return text
    .replaceAll(/zxid=[0-9a-f]+/g, 'zxid=…')
    .replaceAll(/time ?= ?\w{3} \w{3} .*/g, 'time=…')
    .replaceAll(/time = -?\d+ msec/g, '')
    .replaceAll(/ephemeralOwner = [0-9a-f]{2,}/g, 'ephemeralOwner = …')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .sort();
}
