import { describe, expect, test } from 'vitest';
import type { WatchListener } from '../client/request-options.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ConnectionLossError, ServerError } from '../protocol/errors.ts';
import { encodeFloors, NO_FLOORS, type TokenFloors, tokenAt } from './floor-node.ts';
import { SessionTokens } from './session-tokens.ts';

const PATH = '/holdfast/token-floor';

/** A server with one node; each answer waits until it is let through. */
class Scene {
  readonly session = { lastZxid: 1n } as { lastZxid: bigint };
  readonly log: string[] = [];
  readonly tokens: SessionTokens;
  floors: TokenFloors = NO_FLOORS;
  data: Buffer | undefined;
  mzxid = 0n;
  zxid = 1n;
  /** What the next requests end with. */
  readonly refusals: Error[] = [];
  #watch: WatchListener | undefined;
  readonly #answers: (() => void)[] = [];

  constructor() {
    this.tokens = new SessionTokens(
      this as unknown as ZooKeeper,
      this.session as unknown as Session,
      '/holdfast/batons',
    );
  }

  /** Sets a floor at the server, and returns the event, if a watch was set. */
  raise(floor: bigint): (() => void) | undefined {
    this.mzxid = ++this.zxid;
    this.data = Buffer.from(encodeFloors(floor, this.floors));
    this.floors = [...this.floors, { floor, since: this.mzxid }];
    return this.fire('node-data-changed');
  }

  fire(type: 'node-data-changed' | 'node-deleted'): (() => void) | undefined {
    const watch = this.#watch;
    this.#watch = undefined;
    return watch && (() => void watch({ type, path: PATH } as Parameters<WatchListener>[0]));
  }

  exists(path: string, { watch }: { watch: WatchListener }) {
    return this.#ask(`exists ${path}`, () => {
      this.#watch = watch;
      return this.data ? {} : undefined;
    });
  }

  get(path: string) {
    return this.#ask(`get ${path}`, () => {
      if (!this.data) throw new ServerError(errorCodes['no-node'], 'get', path);
      return { data: this.data, stat: { mzxid: this.mzxid } };
    });
  }

  /** Answers what has been asked, and what is asked because of that. */
  async answer(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const answer = this.#answers.shift();
      if (!answer) return;
      answer();
    }
  }

  #ask<T>(what: string, answer: () => T): Promise<T> {
    this.log.push(what);
    return new Promise((resolve, reject) => {
      this.#answers.push(() => {
        this.session.lastZxid = this.zxid;
        const refusal = this.refusals.shift();
        try {
          if (refusal) throw refusal;
          resolve(answer());
        } catch (error) {
          reject(error);
        }
      });
    });
  }
}

describe('the tokens of a session', () => {
  test('are known after one request where there is no floor, and asked for once', async () => {
    const scene = new Scene();
    scene.tokens.prepare();
    scene.tokens.prepare();
    expect(scene.tokens.of(5n)).toBeUndefined();
    const known = scene.tokens.whenKnown(5n);
    await scene.answer();
    expect(await known).toBe(5n);
    expect(scene.tokens.of(6n)).toBe(6n);
    expect(scene.log).toEqual([`exists ${PATH}`]);
  });

  test('are not known from when a change is told until it has been read', async () => {
    const scene = new Scene();
    scene.tokens.prepare();
    await scene.answer();
    const event = scene.raise(100n)!;
    expect(scene.tokens.of(2n)).toBe(2n);
    event();
    expect(scene.tokens.of(9n)).toBeUndefined();
    const known = scene.tokens.whenKnown(9n);
    await scene.answer();
    expect(await known).toBe(109n);
    expect(scene.tokens.of(1n)).toBe(1n);
  });

  test('are read again if they change while they are read', async () => {
    const scene = new Scene();
    scene.tokens.prepare();
    const known = scene.tokens.whenKnown(9n);
    await new Promise((resolve) => setImmediate(resolve));
    scene.raise(100n); // No watch yet: the answer shows it.
    await scene.answer();
    expect(await known).toBe(109n);
    const event = scene.raise(200n)!;
    event();
    const again = scene.tokens.whenKnown(9n);
    const last = scene.raise(300n);
    expect(last).toBeUndefined();
    await scene.answer();
    expect(await again).toBe(309n);
  });

  test('are asked for again over lost connections, and by the next who needs them after a refusal', async () => {
    const scene = new Scene();
    scene.refusals.push(new ConnectionLossError('exists', 'unknown'));
    scene.tokens.prepare();
    await scene.answer();
    expect(scene.tokens.of(9n)).toBe(9n);
    scene.raise(100n)!();
    scene.refusals.push(new ServerError(errorCodes['no-auth'], 'exists', PATH));
    const refused = scene.tokens.whenKnown(9n);
    refused.catch(() => {});
    await scene.answer();
    await expect(refused).rejects.toMatchObject({ code: 'ZK_NO_AUTH' });
    expect(scene.tokens.of(9n)).toBeUndefined();
    const known = scene.tokens.whenKnown(9n);
    await scene.answer();
    expect(await known).toBe(109n);
  });

  test('without room for a watch are read again for each entry that was made later', async () => {
    const scene = new Scene();
    scene.refusals.push(new ServerError(errorCodes['throttled-op'], 'exists', PATH));
    const first = scene.tokens.whenKnown(1n);
    await scene.answer();
    expect(await first).toBe(1n);
    scene.raise(100n);
    expect(scene.tokens.of(1n)).toBe(1n);
    expect(scene.tokens.of(3n)).toBeUndefined();
    scene.zxid = 3n;
    const later = scene.tokens.whenKnown(3n);
    await scene.answer();
    expect(await later).toBe(103n);
  });

  test.each(['removed', 'lowered'])('are not given by a floor that was %s', async (how) => {
    const scene = new Scene();
    scene.raise(100n);
    scene.tokens.prepare();
    await scene.answer();
    expect(scene.tokens.of(9n)).toBe(109n);
    scene.data = how === 'removed' ? undefined : Buffer.from(encodeFloors(50n, NO_FLOORS));
    scene.fire('node-deleted')!();
    const refused = scene.tokens.whenKnown(9n);
    refused.catch(() => {});
    await scene.answer();
    await expect(refused).rejects.toMatchObject({ code: 'ZK_FOREIGN_DATA' });
    expect(scene.tokens.of(9n)).toBeUndefined();
  });

  test('are those of the server, for whatever order of floors, entries and answers', async () => {
    for (let seed = 0; seed < 200; seed++) {
      const scene = new Scene();
      const draw = (below: number) => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return (state >>> 16) % below;
      };
      let state = seed;
      let floor = 0n;
      // What the server tells one connection, in its order: that a floor was set, and that an entry was made.
      const told: (() => void)[] = [];
      const tokens: Promise<void>[] = [];
      scene.tokens.prepare();
      for (let step = 0; step < 30; step++) {
        const what = draw(4);
        if (what === 0) {
          floor += 1_000n;
          const event = scene.raise(floor);
          if (event) told.push(event);
        } else if (what === 1) {
          const czxid = ++scene.zxid;
          const expected = tokenAt(scene.floors, czxid);
          told.push(() => {
            tokens.push(
              scene.tokens.whenKnown(czxid).then((token) => expect(token, `seed ${seed}`).toBe(expected)),
            );
          });
        } else if (what === 2) {
          for (const tell of told.splice(0)) tell();
        } else {
          for (const tell of told.splice(0)) tell(); // An answer comes behind what was told before it.
          await scene.answer();
        }
      }
      for (const tell of told.splice(0)) tell();
      await scene.answer();
      await Promise.all(tokens);
    }
  });
});
