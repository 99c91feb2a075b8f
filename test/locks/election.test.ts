import { describe, expect } from 'vitest';
import { type Leader, type Leadership, LockLostError, LockRevokedError } from '../../src/holdfast.ts';
import { everyBackend, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';
import { turns, Witness } from '../support/witness.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('an election', () => {
  // L1, L3, E2, E17; ZooKeeper's election: 1, 3, 9 participants, names readable
  for (const count of [1, 3, 9]) {
    onEveryLockBackend(
      `has one leader, the first who came, then the next: ${count} candidates`,
      async (workspace) => {
        const clients = await workspace.holdfasts(Math.min(count, 3));
        const elections = Array.from({ length: count }, (_, index) =>
          clients[index % clients.length]!.election('e', { id: `candidate ${index}` }),
        );
        const gaveUp = new AbortController();
        const campaigns: Promise<Leadership>[] = [];
        for (const [index, election] of elections.entries()) {
          const options = index === 1 ? { signal: gaveUp.signal } : {};
          campaigns.push(election.campaign(options));
          await workspace.untilEntries('e', index + 1);
        }
        // One in the middle gives up: nobody leads by mistake.
        gaveUp.abort(new Error('not today'));
        if (count > 1) await expect(campaigns[1]).rejects.toThrow('not today');
        const epochs: bigint[] = [];
        for (const [index, campaign] of campaigns.entries()) {
          if (index === 1) continue;
          const leadership = await campaign;
          epochs.push(leadership.epoch);
          for (const election of elections.slice(0, 3)) {
            expect(await election.leader()).toEqual({ id: `candidate ${index}`, epoch: leadership.epoch });
          }
          expect((await clients[0]!.inspect('e')).kind).toBe('election');
          await leadership.resign();
        }
        expect(epochs).toEqual([...epochs].sort((a, b) => (a < b ? -1 : 1)));
        expect(await elections[0]!.leader()).toBeUndefined();
      },
    );
  }

  // L2, E1
  onEveryLockBackend('never has two leaders, while each leads once per round', async (workspace) => {
    const clients = await workspace.holdfasts(5);
    const witness = new Witness();
    await Promise.all(
      clients.map(async (client) => {
        for (let round = 0; round < 3; round++) {
          await using leadership = await client.election('e').campaign();
          await witness.during(leadership, () => turns(3));
        }
      }),
    );
    expect(witness.tokens).toHaveLength(15);
    expect(witness).toMatchObject({ seenMax: 1, tokensRise: true });
  });

  // L19, kazoo
  onEveryLockBackend(
    'has no leader before anyone came, and can be watched from then on',
    async (workspace) => {
      const [one, two, watcher] = await workspace.holdfasts(3);
      expect(await watcher!.election('e').leader()).toBeUndefined();
      const seen: (string | undefined)[] = [];
      const stop = new AbortController();
      const watching = (async () => {
        for await (const leader of watcher!.election('e').observe({ signal: stop.signal }))
          seen.push(leader?.id);
      })().catch((error) => expect(error).toBe(stop.signal.reason));
      await until('no leader to be seen', () => seen.length === 1);
      const first = await one!.election('e', { id: 'one' }).campaign();
      await until('the first', () => seen.length === 2);
      const second = two!.election('e', { id: 'two' }).campaign();
      await workspace.untilEntries('e', 2);
      await first.resign();
      await until('the second', () => seen.length === 3);
      await (await second).resign();
      await until('none', () => seen.length === 4);
      await workspace.admin.delete('/locks/e');
      const third = await one!.election('e', { id: 'one' }).campaign();
      await until('the third', () => seen.length === 5);
      stop.abort();
      await watching;
      await third.resign();
      expect(seen).toEqual([undefined, 'one', 'two', undefined, 'one']);
    },
  );

  onEveryLockBackend(
    'is watched over lost sessions, and left in a loop by break or abort',
    async (workspace) => {
      const { holdfast, expire } = await workspace.faulty();
      const leader = await (await workspace.holdfast()).election('e', { id: 'one' }).campaign();
      const leaders: (Leader | undefined)[] = [];
      const watching = (async () => {
        for await (const each of holdfast.election('e').observe()) {
          leaders.push(each);
          if (leaders.length === 2) break;
        }
      })();
      await until('the leader', () => leaders.length === 1);
      const { session } = holdfast.zk;
      await expire();
      await until('a new session', () => holdfast.zk.session !== session);
      await until('it to be watched again', async () => (await workspace.watchedPaths()).length === 1);
      await leader.resign();
      await watching;
      expect(leaders).toEqual([{ id: 'one', epoch: leader.epoch }, undefined]);
      // Aborted at any moment, it leaves no watch.
      for (let count = 0; count < 8; count++) {
        const stop = new AbortController();
        const looking = holdfast.election('e').observe({ signal: stop.signal });
        const seen = (async () => {
          for await (const _ of looking);
        })();
        const caught = expect(seen).rejects.toThrow('stop');
        await turns(count);
        stop.abort(new Error('stop'));
        await caught;
      }
    },
  );

  // L15, L16, E10; CURATOR-696
  onEveryLockBackend(
    'tells a leader that lost its session, which then leads again only in its turn',
    async (workspace) => {
      const { holdfast, expire } = await workspace.faulty();
      const other = await workspace.holdfast();
      const terms: Leadership[] = [];
      const stop = new AbortController();
      const leading = holdfast
        .election('e')
        .lead(
          async (leadership, signal) => {
            terms.push(leadership);
            await untilAborted(signal);
            leadership.assertHeld();
          },
          { signal: stop.signal },
        )
        .catch((error: unknown) => error);
      await until('the first term', () => terms.length === 1);
      const next = other.election('e').campaign();
      await workspace.untilEntries('e', 2);
      await expire();
      const leadership = await next;
      await until('the old leader to be told', () => terms[0]!.signal.aborted);
      expect(terms[0]!.signal.reason).toBeInstanceOf(LockLostError);
      expect(leadership.epoch).toBeGreaterThan(terms[0]!.epoch);
      await workspace.untilEntries('e', 2);
      expect(terms).toHaveLength(1);
      await leadership.resign();
      await until('the second term', () => terms.length === 2);
      expect(terms[1]!.epoch).toBeGreaterThan(leadership.epoch);
      const reason = new Error('enough');
      stop.abort(reason);
      expect(await leading).toBe(reason);
    },
    everyBackend,
  );

  // E3, E18
  onEveryLockBackend('is led again and again, until the work fails or is told to stop', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const epochs: bigint[] = [];
    const failing = holdfast.election('e').lead(
      async ({ epoch }) => {
        epochs.push(epoch);
        if (epochs.length === 3) throw new Error('the work failed');
      },
      { signal: new AbortController().signal },
    );
    await expect(failing).rejects.toThrow('the work failed');
    expect(epochs).toHaveLength(3);
    await workspace.untilEntries('e', 0);
    const stop = new AbortController();
    const held = await holdfast.election('e', { id: 'other' }).campaign();
    const waiting = expect(
      holdfast.election('e').lead(async () => {}, { signal: stop.signal }),
    ).rejects.toThrow('stop');
    await workspace.untilEntries('e', 2);
    stop.abort(new Error('stop'));
    await waiting;
    await held.resign();
  });

  onEveryLockBackend('is led on after a stray request, and after a loss behind one', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const terms: Leadership[] = [];
    const stop = new AbortController();
    const leading = holdfast
      .election('e')
      .lead(
        async (leadership, signal) => {
          terms.push(leadership);
          if (terms.length === 2) {
            // Does not care for the request: only the loss ends this one.
            await until('the loss', () => leadership.remainingMs() === 0);
            leadership.assertHeld();
          }
          await untilAborted(signal);
          throw signal.reason;
        },
        { signal: stop.signal },
      )
      .catch((error: unknown) => error);
    for (const count of [1, 2]) {
      await until(`term ${count}`, () => terms.length === count);
      await workspace.untilWatched('e');
      const [leader] = await workspace.untilEntries('e', 1);
      await workspace.admin.set(`/locks/e/${leader}`, '__REVOKE__');
      const { revocation } = terms[count - 1]!;
      await until('the request to be noticed', () => revocation.aborted);
      expect(revocation.reason).toBeInstanceOf(LockRevokedError);
    }
    await expire();
    await until('the third term', () => terms.length === 3);
    expect(terms.map(({ epoch }) => epoch)).toEqual(
      terms.map(({ epoch }) => epoch).toSorted((a, b) => (a < b ? -1 : 1)),
    );
    const reason = new Error('enough');
    stop.abort(reason);
    expect(await leading).toBe(reason);
  });

  onEveryLockBackend(
    'ends for a candidate whose entry an operator removes while it waits',
    async (workspace) => {
      const [holdfast, other] = await workspace.holdfasts(2);
      const held = await other!.election('e').campaign();
      const [leader] = await workspace.untilEntries('e', 1);
      const { signal } = new AbortController();
      const waiting = holdfast!.election('e').lead(async () => {}, { signal });
      waiting.catch(() => {});
      const entries = await workspace.untilEntries('e', 2);
      await workspace.admin.delete(`/locks/e/${entries.find((name) => name !== leader)}`);
      await expect(waiting).rejects.toMatchObject({ code: 'LOCK_CONTENDER_EVICTED' });
      await held.resign();
    },
  );

  // L13: a short outage changes nothing
  onEveryLockBackend(
    'keeps its leader, and its node, over a short loss of the connection',
    async (workspace) => {
      const { holdfast, proxy } = await workspace.faulty();
      const leadership = await holdfast.election('e').campaign();
      const before = await workspace.entries('e');
      proxy.resetAll();
      await until('the loss', () => holdfast.zk.session.state !== 'connected');
      await until('the connection', () => holdfast.zk.session.state === 'connected');
      expect(await workspace.entries('e')).toEqual(before);
      leadership.assertHeld();
      expect(leadership.signal.aborted).toBe(false);
      await leadership.resign();
    },
    everyBackend,
  );

  // L6, L7, L14, L17: gone before, gone between
  onEveryLockBackend('goes on when the one ahead disappears at any moment', async (workspace) => {
    const [one, two, three] = await workspace.holdfasts(3);
    for (let count = 0; count < 12; count++) {
      const gaveUp = new AbortController();
      const first = await one!.election('e').campaign();
      const second = two!
        .election('e')
        .campaign({ signal: gaveUp.signal })
        .catch(() => undefined);
      const third = three!.election('e').campaign();
      await turns(count);
      gaveUp.abort();
      await Promise.all([first.resign(), second.then((leadership) => leadership?.resign())]);
      await (await third).resign();
    }
  });
});
