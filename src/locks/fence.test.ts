import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { MultiError, ServerError } from '../protocol/errors.ts';
import { ForeignDataError } from '../queue/foreign-data-error.ts';
import { Fence, ZooKeeperFence } from './fence.ts';
import { StaleTokenError } from './lock-errors.ts';

const PATH = '/fence';

/** The fence's node on the leader: each state it has had, the newest last. `undefined` is a node that does not exist. */
class LeaderState {
  readonly states: ({ readonly data: string; readonly version: number } | undefined)[] = [undefined];
  writeCount = 0;

  get newest() {
    return this.states.at(-1);
  }

  put(data: string): void {
    this.states.push({ data, version: (this.newest?.version ?? -1) + 1 });
    this.writeCount++;
  }
}

/** A client of a follower that lags: it reads an old state until a write of its own was answered. */
class LaggingClient {
  readonly #leader: LeaderState;
  readonly #chooseLag: (max: number) => number;
  /** The oldest state that this session may still read. */
  #seen = 0;
  requestCount = 0;

  constructor(leader: LeaderState, chooseLag: (max: number) => number) {
    this.#leader = leader;
    this.#chooseLag = chooseLag;
  }

  get zk(): ZooKeeper {
    return this as unknown as ZooKeeper;
  }

  bounded(_what: string, _options: object, run: (signal: AbortSignal) => Promise<unknown>) {
    return run(new AbortController().signal);
  }

  async get() {
    this.requestCount++;
    const newest = this.#leader.states.length - 1;
    this.#seen = newest - this.#chooseLag(newest - this.#seen);
    const state = this.#leader.states[this.#seen];
    await Promise.resolve();
    if (!state) throw new ServerError(-101, 'get', PATH);
    return { data: Buffer.from(state.data), stat: { version: state.version } };
  }

  async set(_path: string, data: string, { version }: { version: number }) {
    await this.#write();
    if (!this.#leader.newest) throw new ServerError(-101, 'set', PATH);
    if (this.#leader.newest.version !== version) throw new ServerError(-103, 'set', PATH);
    this.#leader.put(data);
    this.#seen++;
  }

  async create(_path: string, data: string) {
    await this.#write();
    if (this.#leader.newest) throw new ServerError(-110, 'create', PATH);
    this.#leader.put(data);
    this.#seen++;
  }

  async multi([check]: readonly { readonly wire: { readonly request: { readonly version: number } } }[]) {
    await this.#write();
    const { version } = check!.wire.request;
    if (this.#leader.newest?.version !== version) throw new MultiError(-103, 'multi', PATH, 0);
    return [undefined];
  }

  async ensurePath() {
    await this.#write();
  }

  async #write() {
    this.requestCount++;
    await Promise.resolve();
    this.#seen = this.#leader.states.length - 1;
  }
}

const inStep = (leader: LeaderState) => new LaggingClient(leader, () => 0);

describe('a fence in ZooKeeper', () => {
  test('refuses an overtaken token although the follower that is asked still shows it as the largest', async () => {
    const leader = new LeaderState();
    const lagging = new LaggingClient(leader, (max) => max);
    await new ZooKeeperFence(lagging.zk, PATH).admit(302n);
    await new ZooKeeperFence(inStep(leader).zk, PATH).admit(306n);
    const late = new ZooKeeperFence(lagging.zk, PATH).admit(302n);
    await expect(late).rejects.toMatchObject({ code: 'LOCK_STALE_TOKEN', token: 302n, highest: 306n });
  });

  test('admits no token once a larger one has been admitted, whatever the followers show', async () => {
    const admission = fc.record({
      client: fc.nat({ max: 2 }),
      token: fc.bigInt({ min: 1n, max: 5n }),
      section: fc.nat({ max: 2 }),
      together: fc.boolean(),
    });
    const lags = fc.infiniteStream(fc.nat({ max: 1_000 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(admission, { minLength: 2, maxLength: 12 }),
        lags,
        async (admissions, stream) => {
          const leader = new LeaderState();
          const clients = Array.from(
            { length: 3 },
            () => new LaggingClient(leader, (max) => stream.next().value! % (max + 1)),
          );
          let largest = 0n;
          let underway: Promise<void>[] = [];
          for (const { client, token, section, together } of admissions) {
            if (!together) await Promise.all(underway.splice(0));
            const mark = token * 10n + BigInt(section);
            const before = largest;
            const admitting = new ZooKeeperFence(clients[client]!.zk, PATH).admit(token, section).then(
              () => {
                if (mark < before) throw new Error(`${mark} was admitted after ${before}`);
                if (mark > largest) largest = mark;
              },
              (error) => {
                if (!(error instanceof StaleTokenError)) throw error;
              },
            );
            underway = [...underway, admitting];
          }
          await Promise.all(underway);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('needs two requests for a token that was admitted, and for one that is new', async () => {
    const leader = new LeaderState();
    leader.put('7');
    for (const token of [7n, 8n]) {
      const client = inStep(leader);
      await new ZooKeeperFence(client.zk, PATH).admit(token);
      expect(client.requestCount).toBe(2);
    }
  });

  test.each([
    'hello',
    '-5',
    '1.5.2',
    '5.x',
    '5.',
    '.5',
    '0x10',
    ' 5',
    '5\n',
    '1e3',
    '9223372036854775808',
    '5.9007199254740992',
    '5'.repeat(10_000),
  ])('does not touch a node that holds something else: %#', async (data) => {
    const leader = new LeaderState();
    leader.put(data);
    const refused = new ZooKeeperFence(inStep(leader).zk, PATH).admit(7n);
    await expect(refused).rejects.toBeInstanceOf(ForeignDataError);
    await expect(refused).rejects.toMatchObject({ code: 'ZK_FOREIGN_DATA', path: PATH });
    await expect(refused).rejects.toThrow(/^\/fence: holds ".{1,103}, .*token/);
    expect(leader.newest?.data).toBe(data);
    expect(leader.writeCount).toBe(1);
  });

  test('takes an empty node for one that has admitted nothing', async () => {
    const leader = new LeaderState();
    leader.put('');
    await new ZooKeeperFence(inStep(leader).zk, PATH).admit(7n);
    expect(leader.newest?.data).toBe('7');
  });

  test('refuses what is no token or no section before anything is sent', async () => {
    const leader = new LeaderState();
    const client = inStep(leader);
    const fence = new ZooKeeperFence(client.zk, PATH);
    for (const [token, section, type] of wrong) {
      await expect(fence.admit(token as never, section as never)).rejects.toBeInstanceOf(type);
    }
    expect(client.requestCount).toBe(0);
    for (const path of ['fence', '/fence/', '', 7]) {
      expect(() => new ZooKeeperFence(client.zk, path as never)).toThrow(TypeError);
    }
  });
});

describe('a fence in memory', () => {
  test('refuses what is no token or no section, and remembers nothing of it', () => {
    const fence = new Fence();
    for (const [token, section, type] of wrong) {
      expect(() => fence.admit(token as never, section as never)).toThrow(type);
      expect(() => new Fence({ highest: token as never, section: section as never })).toThrow(type);
    }
    expect(fence.highest).toBe(0n);
    fence.admit(2n ** 63n - 1n, Number.MAX_SAFE_INTEGER); // The largest of each.
  });
});

const wrong = [
  [7, 0, TypeError],
  ['7', 0, TypeError],
  [null, 0, TypeError],
  [-1n, 0, RangeError],
  [2n ** 63n, 0, RangeError],
  [7n, -1, RangeError],
  [7n, 1.5, RangeError],
  [7n, Number.NaN, RangeError],
  [7n, 2 ** 53, RangeError],
  [7n, '1', TypeError],
  [7n, 1n, TypeError],
  [7n, null, TypeError],
] as const;
