import { describe, expect, test } from 'vitest';
import { connect, LockTimeoutError } from '../../src/holdfast.ts';
import { seededRandom, startTestServer } from '../../src/testing.ts';
import { everyBackend, onEveryLockBackend } from '../support/lock-backends.ts';
import { turns, Witness } from '../support/witness.ts';

describe('a read-write lock', () => {
  // kazoo: two readers share, reader blocks writer, writer blocks both, mixed queue order
  onEveryLockBackend(
    'lets readers share and writers exclude, in order of arrival',
    async (workspace) => {
      const clients = await workspace.holdfasts(3);
      const log: string[] = [];
      const first = await clients[0]!.readWriteLock('c').read.acquire();
      const gates: (() => void)[] = [];
      const waiting: Promise<void>[] = [];
      for (const [index, name] of ['r1', 'w1', 'r2', 'r3', 'w2'].entries()) {
        const { read, write } = clients[index % 3]!.readWriteLock('c');
        const side = name.startsWith('r') ? read : write;
        waiting.push(
          side.use(async () => {
            log.push(`${name} in`);
            await new Promise<void>((resolve) => gates.push(resolve));
            log.push(`${name} out`);
          }),
        );
        await workspace.untilEntries('c', index + 2);
      }
      await turns();
      expect(log).toEqual(['r1 in']); // Beside the first reader, and nobody passes the writer behind it.
      gates.shift()!();
      await waiting[0];
      await first.release();
      await untilLog(log, 'w1 in');
      gates.shift()!();
      await untilLog(log, 'r2 in');
      await untilLog(log, 'r3 in');
      expect(log).not.toContain('w2 in');
      for (const gate of gates.splice(0)) gate();
      await untilLog(log, 'w2 in');
      expect(log.slice(-3, -1).sort()).toEqual(['r2 out', 'r3 out']);
      gates.shift()!();
      await Promise.all(waiting);
    },
    everyBackend,
  );

  // W1
  onEveryLockBackend('shows its readers as holders and its writers as waiting', async (workspace) => {
    const holdfast = await workspace.holdfast();
    const lock = holdfast.readWriteLock('c');
    const readers = await Promise.all(Array.from({ length: 20 }, () => lock.read.acquire()));
    const writers = Array.from({ length: 8 }, () => lock.write.use(() => turns(1)));
    await workspace.untilEntries('c', 28);
    const info = await holdfast.inspect('c');
    expect(info.kind).toBe('read-write');
    expect(info.holders.map(({ role }) => role)).toEqual(Array(20).fill('read'));
    expect(info.queue.map(({ role }) => role)).toEqual(Array(8).fill('write'));
    await Promise.all(readers.map((reader) => reader.release()));
    await Promise.all(writers);
  });

  // W2, W3
  onEveryLockBackend(
    'makes a writer wait for its own reader, and a reader for a writer of another task',
    async (workspace) => {
      const lock = (await workspace.holdfast()).readWriteLock('c');
      const read = await lock.read.acquire();
      await expect(lock.write.acquire({ timeoutMs: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
      await expect(lock.write.acquire({ within: read })).rejects.toBeInstanceOf(TypeError);
      await read.release();
      const write = await lock.write.acquire();
      await expect(lock.read.acquire({ timeoutMs: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
      await write.release();
    },
  );

  // W4, W5; CURATOR-276/621
  onEveryLockBackend(
    'goes from writing to reading without letting a writer in between',
    async (workspace) => {
      const [holder, other] = await workspace.holdfasts(2);
      const lock = holder!.readWriteLock('c');
      // One that has waited knows of others, and would pass a baton.
      await workspace.admin.ensurePath('/holdfast/batons');
      const before = await other!.readWriteLock('c').write.acquire();
      const acquiring = lock.write.acquire();
      await workspace.untilEntries('c', 2);
      await before.release();
      const write = await acquiring;
      let writing = false;
      const writer = other!.readWriteLock('c').write.use(async (lease) => {
        writing = true;
        return lease.token;
      });
      await workspace.untilEntries('c', 2);
      const reader = other!.readWriteLock('c').read.use(async () => writing);
      await workspace.untilEntries('c', 3);
      const read = await lock.downgrade(write);
      expect(read.token).toBe(write.token);
      expect(write.remainingMs()).toBe(0);
      await workspace.untilEntries('c', 3);
      expect((await other!.inspect('c')).holders.map(({ role }) => role)).toEqual(['read']);
      // Longer than the writer needs to look, had it been woken for good.
      await expect(other!.readWriteLock('c').write.acquire({ timeoutMs: 200 })).rejects.toBeInstanceOf(
        LockTimeoutError,
      );
      expect(writing).toBe(false);
      await read.release();
      expect(await writer).toBeGreaterThan(write.token);
      expect(await reader).toBe(true);
    },
  );

  // W4 by hand: both held at once, the write lock let go first, or last
  onEveryLockBackend('is read inside its own writing, by lease and by use', async (workspace) => {
    const lock = (await workspace.holdfast()).readWriteLock('c');
    for (const writeFirst of [true, false]) {
      const write = await lock.write.acquire();
      const read = await lock.read.acquire({ within: write, timeoutMs: 5_000 });
      expect(await workspace.entries('c')).toHaveLength(2);
      await (writeFirst ? write : read).release();
      expect((writeFirst ? read : write).remainingMs()).toBeGreaterThan(0);
      await (writeFirst ? read : write).release();
    }
    const inside = await lock.write.use(
      async (write) =>
        (await lock.read.use(async (read) => read.token, { timeoutMs: 5_000 })) === write.token,
    );
    expect(inside).toBe(true);
    await (await lock.write.acquire({ timeoutMs: 5_000 })).release();
  });

  // W6
  onEveryLockBackend('never lets a writer in with anyone, and lets readers overlap', async (workspace) => {
    const clients = await workspace.holdfasts(4);
    const random = seededRandom(6);
    const inside = { read: 0, write: 0 };
    const seen = { readersMax: 0, writes: 0, faults: [] as string[] };
    const writes = new Witness();
    await Promise.all(
      clients.map(async (client) => {
        const { read, write } = client.readWriteLock('c');
        for (let round = 0; round < 30; round++) {
          const writing = random.u32() % 5 === 0;
          await using lease = await (writing ? write : read).acquire({ timeoutMs: 20_000 });
          inside[writing ? 'write' : 'read']++;
          if (inside.write > 1 || (inside.write === 1 && inside.read > 0)) {
            seen.faults.push(JSON.stringify(inside));
          }
          seen.readersMax = Math.max(seen.readersMax, inside.read);
          if (writing) seen.writes++;
          if (writing) await writes.during(lease, () => turns(2));
          else await turns(random.u32() % 8);
          inside[writing ? 'write' : 'read']--;
        }
      }),
    );
    expect(seen.faults).toEqual([]);
    expect(seen.readersMax).toBeGreaterThan(1);
    expect(seen.writes).toBeGreaterThan(5);
    expect(writes).toMatchObject({ seenMax: 1, tokensRise: true });
  });

  // W8
  onEveryLockBackend('lets a reader in when the writer has lost its session', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    const other = await workspace.holdfast();
    const write = await holdfast.readWriteLock('c').write.acquire();
    const reading = other.readWriteLock('c').read.acquire();
    await workspace.untilEntries('c', 2);
    await expire();
    const read = await reading;
    await write.release();
    expect(() => write.assertHeld()).toThrow();
    await read.release();
  });
});

async function untilLog(log: readonly string[], line: string): Promise<void> {
  while (!log.includes(line)) await turns(1);
}

describe('a writer that goes on as a reader', () => {
  // Found by the nemesis: what it ended with was the session's error, not the lock's.
  test('when its session ends is told that the lock is lost', async () => {
    await using server = await startTestServer();
    await using holdfast = await connect({ servers: server.connectString });
    const lock = holdfast.readWriteLock('rw');
    const lease = await lock.write.acquire();
    const downgrading = lock.downgrade(lease);
    server.expireSession(holdfast.zk.session.id);
    await expect(downgrading).rejects.toMatchObject({ code: 'LOCK_LOST', lockName: 'rw' });
  });
});
