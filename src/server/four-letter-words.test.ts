import { describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import type { ProcessFacts } from '../base/process-facts.ts';
import { DataTree } from './data-tree.ts';
import {
  answerFourLetterWord,
  defaultFourLetterWords,
  type FourLetterWord,
  fourLetterWordOf,
} from './four-letter-words.ts';
import { VERSION_TEXT } from './reported.ts';
import { ServerConnection, type ServerLink } from './server-connection.ts';
import { ServerCore } from './server-core.ts';
import { defaultLimits } from './server-limits.ts';
import { ServerStatistics } from './server-statistics.ts';
import { SessionTable } from './session-table.ts';
import { WatchTable } from './watch-table.ts';

const NOW_MS = 10_000;
/** Mon Nov 16 01:43:36 UTC 2026. */
const WALL_MS = 1_794_793_416_000;

const FACTS: ProcessFacts = {
  hostName: 'here',
  nodeVersion: '20.0.0',
  systemName: 'Linux',
  systemVersion: '6',
  architecture: 'x64',
  userName: 'ann',
  userFolder: '/home/ann',
  workingFolder: '/srv',
  memoryFreeBytes: 3 * 2 ** 20,
  memoryTotalBytes: 5 * 2 ** 20,
  memoryUsedBytes: 2 * 2 ** 20,
  openFileCount: 12,
  openFilesMax: undefined,
};

class FakeLink implements ServerLink {
  text = '';
  ended = false;
  destroyed = false;
  bufferedBytes = 0;
  write(bytes: Buffer): void {
    this.text += bytes.toString();
  }
  end(): void {
    this.ended = true;
  }
  destroy(): void {
    this.destroyed = true;
  }
  pause(): void {}
  resume(): void {}
}

/** A server with one session on one connection, which holds an ephemeral node and watches two paths; and an asker. */
function world() {
  const tree = new DataTree();
  const sessions = new SessionTable<ServerConnection>({
    random: { bytes: (count: number) => new Uint8Array(count) } as never,
    tickMs: 2_000,
    wallMs: 0,
  });
  const watches = new WatchTable<ServerConnection>();
  const peer = (port: number) => ({ address: '127.0.0.1', port, identities: [] });
  const client = new ServerConnection(peer(4001), new FakeLink(), NOW_MS - 5_000);
  const asker = new ServerConnection(peer(4002), new FakeLink(), NOW_MS);
  const session = sessions.create(6_000, NOW_MS);
  session.connection = client;
  client.session = session;
  client.receivedCount = 5;
  client.sentCount = 4;
  client.lastOperation = 'getChildren2';
  client.lastXid = 4;
  client.lastZxid = 0xden;
  client.lastResponseAtMs = 9_876.5;
  for (const latencyMs of [0, 16.9, 2]) client.latencies.add(latencyMs);
  asker.receivedCount = 1;
  tree.apply(
    { kind: 'create', path: '/e', data: null, acl: [], owner: session.id },
    { zxid: 1n, timeMs: WALL_MS },
  );
  watches.watchData('/e', client);
  watches.watchRecursively('/e/below', client);
  watches.watchChildren('/e', client);
  const statistics = new ServerStatistics();
  statistics.receivedCount = 19;
  statistics.sentCount = 18;
  for (const latencyMs of [1, 7, 9]) statistics.latencies.add(latencyMs);
  const server = {
    ...{ tree, sessions, watches, statistics, limits: defaultLimits },
    connections: new Set([client, asker]),
    zxid: 0xdbn,
    startedAtMs: 1_000,
    readOnly: false,
    listening: { port: 2181 },
    disk: undefined,
    writeFault: undefined,
  };
  const asking = { asker, nowMs: NOW_MS, wallMs: WALL_MS, processFacts: () => FACTS };
  const ask = (word: FourLetterWord, allowed: readonly string[] | '*' = '*') =>
    [...answerFourLetterWord(word, allowed, server, asking)].join('');
  return { ask, client, server, id: `0x${session.id.toString(16)}` };
}

const SUMMARY = [
  'Latency min/avg/max: 1/5.6667/9',
  'Received: 19',
  'Sent: 18',
  'Connections: 2',
  'Outstanding: 0',
  'Zxid: 0xdb',
  'Mode: standalone',
  'Node count: 5',
  '',
].join('\n');

describe('a four-letter word', () => {
  test('is told by the first four bytes alone', () => {
    expect(fourLetterWordOf(Buffer.from('ruok'))).toBe('ruok');
    expect(fourLetterWordOf(Buffer.from('srvr\n and more'))).toBe('srvr');
    expect(fourLetterWordOf(Buffer.from('abcd'))).toBeUndefined();
    expect(fourLetterWordOf(Buffer.from([0, 0, 0, 45]))).toBeUndefined();
  });

  test('is answered with a sentence if it is not allowed', () => {
    const { ask } = world();
    expect(ask('envi', defaultFourLetterWords)).toBe(
      'envi is not executed because it is not in the whitelist.\n',
    );
    expect(ask('ruok', defaultFourLetterWords)).toBe('imok');
    expect(ask('srvr', [])).toBe('srvr is not executed because it is not in the whitelist.\n');
  });

  test.each<[FourLetterWord, string]>([
    ['ruok', 'imok'],
    ['isro', 'rw'],
    ['srvr', `Zookeeper version: ${VERSION_TEXT}\n${SUMMARY}`],
    ['wchs', '1 connections watching 2 paths\nTotal watches:2\n'],
    ['dirs', 'datadir_size: 0\nlogdir_size: 0\n'],
  ])('%s has the form of ZooKeeper', (word, text) => {
    expect(world().ask(word)).toBe(text);
  });

  test('stat lists the connections, the asking one among them', () => {
    expect(world().ask('stat')).toBe(
      [
        `Zookeeper version: ${VERSION_TEXT}`,
        'Clients:',
        ' /127.0.0.1:4001[1](queued=0,recved=5,sent=4)',
        ' /127.0.0.1:4002[0](queued=0,recved=1,sent=0)',
        '',
        SUMMARY,
      ].join('\n'),
    );
  });

  test('cons tells what each connection did last', () => {
    const { ask, id } = world();
    expect(ask('cons')).toBe(
      [
        ` /127.0.0.1:4001[1](queued=0,recved=5,sent=4,sid=${id},lop=GETC,est=${WALL_MS - 5_000},to=6000,` +
          'lcxid=0x4,lzxid=0xde,lresp=9876,llat=2,minlat=0,avglat=6,maxlat=16)',
        ' /127.0.0.1:4002[0](queued=0,recved=1,sent=0)',
        '\n',
      ].join('\n'),
    );
  });

  test('crst makes connections count anew', () => {
    const { ask, id } = world();
    expect(ask('crst')).toBe('Connection stats reset.\n');
    expect(ask('cons').split('\n')[0]).toBe(
      ` /127.0.0.1:4001[1](queued=0,recved=0,sent=0,sid=${id},lop=NA,est=${WALL_MS - 5_000},to=6000,` +
        'lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)',
    );
  });

  test('srst makes the server count anew', () => {
    const { ask } = world();
    expect(ask('srst')).toBe('Server stats reset.\n');
    expect(ask('srvr')).toContain('Latency min/avg/max: 0/0.0/0\nReceived: 0\nSent: 0\n');
  });

  test('mntr has one value per line, and none for what is unknown', () => {
    const values = new Map(
      world()
        .ask('mntr')
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t') as [string, string]),
    );
    expect(Object.fromEntries(values)).toMatchObject({
      zk_version: VERSION_TEXT,
      zk_server_state: 'standalone',
      zk_avg_latency: '5.6667',
      zk_num_alive_connections: '2',
      zk_znode_count: '5',
      zk_watch_count: '3',
      zk_ephemerals_count: '1',
      zk_global_sessions: '1',
      zk_open_file_descriptor_count: '12',
      zk_uptime: '9000',
    });
    expect(values.has('zk_max_file_descriptor_count')).toBe(false);
  });

  test('dump tells when sessions and connections are due', () => {
    const { ask, id } = world();
    expect(ask('dump')).toBe(
      [
        'SessionTracker dump:',
        'Session Sets (1)/(1):',
        '1 expire at Mon Nov 16 01:43:44 UTC 2026:',
        `\t${id}`,
        'ephemeral nodes dump:',
        'Sessions with Ephemerals (1):',
        `${id}:`,
        '\t/e',
        'Connections dump:',
        'Connections Sets (2)/(2):',
        '1 expire at Mon Nov 16 01:43:44 UTC 2026:',
        `\tip: /127.0.0.1:4001 sessionId: ${id}`,
        '1 expire at Mon Nov 16 01:43:46 UTC 2026:',
        '\tip: /127.0.0.1:4002 sessionId: 0x0',
        '',
      ].join('\n'),
    );
  });

  test('wchc and wchp show data watches alone', () => {
    const { ask, id } = world();
    expect(ask('wchc')).toBe(`${id}\n\t/e\n\t/e/below\n\n`);
    expect(ask('wchp')).toBe(`/e\n\t${id}\n/e/below\n\t${id}\n\n`);
  });

  test('envi begins with the version, since kazoo reads only the first packet', () => {
    expect(world().ask('envi').split('\n').slice(0, 3)).toEqual([
      'Environment:',
      `zookeeper.version=${VERSION_TEXT}`,
      'host.name=here',
    ]);
  });

  test('conf tells the limits', () => {
    expect(world().ask('conf')).toContain(
      'tickTime=2000\nmaxClientCnxns=60\nminSessionTimeout=4000\nmaxSessionTimeout=40000\n',
    );
  });
});

describe('a connection that begins with a four-letter word', () => {
  const dial = () => {
    const core = new ServerCore({ clock: systemClock });
    const link = new FakeLink();
    const connection = core.accept(link, { address: '127.0.0.1', port: 1, identities: [] })!;
    return { core, link, connection };
  };

  test('is answered and ended, however the word is cut', () => {
    for (let cut = 0; cut <= 4; cut++) {
      const { core, link, connection } = dial();
      for (const part of ['ruok'.slice(0, cut), 'ruok\n'.slice(cut)])
        core.receive(connection, Buffer.from(part));
      expect(link).toMatchObject({ text: 'imok', ended: true });
      expect(core.connections.size).toBe(0);
    }
  });

  test('is dropped without a word if the word is unknown', () => {
    const { core, link, connection } = dial();
    core.receive(connection, Buffer.from('abcd'));
    expect(link).toMatchObject({ text: '', destroyed: true });
  });
});
