// ZooKeeper's own command line client, the same commands on the embedded server and on a real one.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { startServer } from '../../src/server/start-server.ts';
import { sharedStandalone } from '../support/shared-servers.ts';
import { runProgram } from './run-program.ts';

const ZK_CLI = '/usr/share/zookeeper/bin/zkCli.sh';
/** The shared server has nodes of other tests: all of this one's are below a name of its own. */
const ROOT = `/zk-cli-${process.pid}`;
const COMMANDS = [
  `create ${ROOT} hello`,
  `create ${ROOT} again`,
  `create ${ROOT}/missing/child`,
  `get ${ROOT}`,
  `get -s ${ROOT}`,
  `stat ${ROOT}`,
  `set ${ROOT} changed`,
  `set -s -v 1 ${ROOT} "by version"`,
  `set -v 7 ${ROOT} stale`,
  `create -s -e ${ROOT}/n- first`,
  `create -s -e ${ROOT}/n- second`,
  `create -c ${ROOT}/container`,
  `create -t 600000 ${ROOT}/ttl data`,
  `stat ${ROOT}/ttl`,
  `stat ${ROOT}/container`,
  `ls ${ROOT}/container`,
  `ls -s ${ROOT}/container`,
  `getAllChildrenNumber ${ROOT}`,
  `getEphemerals ${ROOT}`,
  `delete ${ROOT}`,
  `delete -v 3 ${ROOT}/ttl`,
  `delete ${ROOT}/absent`,
  `getAcl ${ROOT}`,
  'whoami',
  `setAcl ${ROOT}/ttl auth::cdrwa`,
  'addauth digest ann:secret',
  'whoami',
  `setAcl -s ${ROOT}/ttl auth::cdrwa`,
  `getAcl -s ${ROOT}/ttl`,
  `setAcl ${ROOT}/ttl ip:not-an-address:r`,
  `create ${ROOT}/private mine digest:${digestOf('bob:secret')}:cdrwa`,
  `get ${ROOT}/private`,
  `set ${ROOT}/private yours`,
  `getAcl ${ROOT}/private`,
  'config',
  `sync ${ROOT}`,
  // Recursive first: once told of another mode, the client keeps to it.
  `addWatch ${ROOT}`,
  `create ${ROOT}/seen`,
  `create ${ROOT}/seen/below`,
  `delete ${ROOT}/seen/below`,
  `removewatches ${ROOT}`,
  `addWatch -m PERSISTENT ${ROOT}`,
  `set ${ROOT} watched`,
  `create ${ROOT}/seen/below`,
  `create ${ROOT}/seen-too`,
  `get -w ${ROOT}/seen`,
  `set ${ROOT}/seen changed`,
  `ls -R ${ROOT}/seen`,
  'reconfig -remove 3',
  `deleteall ${ROOT}`,
  'addauth digest bob:secret',
  `deleteall ${ROOT}`,
  `ls ${ROOT}`,
  'quit',
];

test('says the same on the embedded server and on ZooKeeper', { timeout: 60_000 }, async () => {
  await using embedded = await startServer({ limits: { tickMs: 500, sessionTimeoutMsMax: 60_000 } });
  const [ours, theirs] = await Promise.all([embedded, sharedStandalone()].map(converse));
  expect(ours).toEqual(theirs);
  expect(ours!.answers.length).toBeGreaterThan(COMMANDS.length);
  expect(ours!.events.length).toBeGreaterThan(10);
});

async function converse(server: { readonly connectString: string }) {
  const { stdout, stderr } = await runProgram(ZK_CLI, ['-server', server.connectString], {
    input: `${COMMANDS.join('\n')}\n`,
    environment: { CLIENT_JVMFLAGS: '-XX:+UseSerialGC -XX:TieredStopAtLevel=1' },
  });
  // Events are printed by a thread of their own, anywhere between the answers: these are told apart.
  const event = /^WatchedEvent .*/gm;
  // Who one is comes in the order of a hash table.
  const identity = /^(ip|digest): .*/gm;
  return {
    // Whether the news that it is closed is printed before the client's process ends is a matter of luck.
    events: (stdout.match(event) ?? []).map(normalized).filter((line) => !line.includes('state:Closed')),
    identities: stdout.match(identity)?.sort() ?? [],
    answers: normalized(stdout.replaceAll(event, '').replaceAll(identity, '').replaceAll('WATCHER::', ''))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('Connecting to ')),
    problems: normalized(stderr)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('SLF4J')),
  };
}

/** Without what differs between any two servers: numbers of transactions and sessions, the time, the order of sets. */
function normalized(text: string): string {
  return text
    .replaceAll(/0x[1-9a-f][0-9a-f]*/g, '0x…')
    .replaceAll(/^\[(.*)\]$/gm, (_line, names: string) => `[${names.split(', ').sort().join(', ')}]`)
    .replaceAll(/\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}/g, '(time)');
}

/** A user as access lists name him. */
function digestOf(credentials: string): string {
  return `${credentials.split(':')[0]}:${createHash('sha1').update(credentials).digest('base64')}`;
}
