import { describe, expect, test } from 'vitest';
import { connect, type HoldfastOptions } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { startTestServer, type TestServer } from '../../src/testing.ts';
import { acls, digestId } from '../../src/zookeeper.ts';
import { CountingTransport } from '../support/counting-transport.ts';
import { looseEnds } from '../support/loose-ends.ts';
import { until } from '../support/until.ts';
import { fourLetterWord } from '../support/zookeeper-process.ts';

const TIMEOUT_MS = 1_500;
/** Its entries can be read by itself alone, and those of the other by nobody. */
const SECRET: HoldfastOptions = { auth: [{ scheme: 'digest', auth: 'team:secret' }], acl: acls.creatorOnly };
const BLIND: HoldfastOptions = {
  acl: [{ scheme: 'digest', id: digestId('somebody', 'else'), permissions: ['all'] }],
};

/** A connection as if it were of a process of its own. */
const join = ({ connectString }: TestServer, options: HoldfastOptions = {}) =>
  connect({ servers: connectString, neighbours: new Neighbours(), sessionTimeoutMs: TIMEOUT_MS, ...options });

async function namesIn({ connectString }: TestServer, locks: readonly string[]): Promise<string[]> {
  await using client = await connect({ servers: connectString });
  const lists = locks.map(async (lock) =>
    (await client.zk.children(`/locks/${lock}`)).map((name) => `/locks/${lock}/${name}`),
  );
  return (await Promise.all(lists)).flat();
}

/** Waits until somebody watches these nodes. */
async function untilWatched(server: TestServer, paths: readonly string[]): Promise<void> {
  await until('they are watched', async () => {
    const watched = new Set((await fourLetterWord(server, 'wchp')).split('\n'));
    return paths.every((path) => watched.has(path));
  });
}

// The embedded server keeps events from those who may not read the node, as ZooKeeper does since 3.8.4 and 3.9.2.
describe('entries that may not be read', () => {
  test('keep nobody waiting behind them once they have gone, nor behind others', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer({ fourLetterWords: '*' });
    await using keeper = await join(server, SECRET);
    await using leaver = await join(server, SECRET);
    await using waiter = await join(server);
    const kept = await keeper.mutex('kept').acquire();
    for (const name of ['a', 'b']) await leaver.mutex(name).acquire();
    const held = await namesIn(server, ['a', 'b']);
    const giveUp = new AbortController();
    const forKept = waiter.mutex('kept').acquire({ signal: giveUp.signal });
    forKept.catch(() => {});
    const acquiring = ['a', 'b'].map((name) => waiter.mutex(name).acquire({ timeoutMs: 20_000 }));
    await untilWatched(server, held);
    server.expireSession(leaver.zk.session.id);
    const leases = await Promise.all(acquiring);
    for (const lease of leases) await lease.release();

    // From now on it is known of this folder that nothing may be heard of some.
    const again = await keeper.mutex('a').acquire();
    const next = waiter.mutex('a').acquire({ timeoutMs: 20_000 });
    await untilWatched(server, again.holding.paths);
    await keeper.zk.delete(again.holding.paths[0]!); // As one who releases without a word.
    await (await next).release();
    giveUp.abort(new Error('enough'));
    await expect(forKept).rejects.toThrow('enough');
    await kept.release();
  });

  test('are missed by their own holder, when somebody removes them', async () => {
    await using _ends = looseEnds();
    await using server = await startTestServer({ fourLetterWords: '*' });
    const transport = new CountingTransport();
    await using holder = await join(server, { ...BLIND, transport });
    await using remover = await join(server);
    await holder.tokens(); // The session has looked for a floor of tokens.
    const lookCount = () => transport.traffic.requests.filter((name) => name === 'exists').length;
    const before = lookCount();
    const held = await holder.mutex('m').acquire();
    // It looks whether its node is there, after it has looked at the folder and tried to read the node.
    await until('it has looked for its node', () => lookCount() === before + 2);
    await holder.zk.sync();
    await remover.zk.delete(held.holding.paths[0]!);
    await until('it is lost', () => held.signal.aborted, 20_000);
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
  });
});
