import { describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import { ops } from '../client/operations-of-multi.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ConnectionLossError, MultiError, ServerError } from '../protocol/errors.ts';
import { BatchedWrites } from './batched-writes.ts';
import { ConnectionGate } from './connection-gate.ts';
import type { EntryCreation } from './queue-writes.ts';

const madeBy = async ({ answer }: EntryCreation) => (await answer.promise)[0];

/** A client that writes down what it is asked for, and answers when it is told to. */
class Asked {
  readonly requests: { readonly what: string; readonly answer: Deferred<unknown> }[] = [];
  /** How many had been asked for each time that they were to leave at once. */
  readonly flushed: number[] = [];
  readonly #session = { flush: () => void this.flushed.push(this.requests.length) } as unknown as Session;
  readonly #zk = this as unknown as ZooKeeper;
  readonly writes = new BatchedWrites(this.#zk, this.#session, {
    clock: systemClock,
    gate: new ConnectionGate(this.#zk, this.#session),
  });

  get log(): string[] {
    return this.requests.map(({ what }) => what);
  }

  create(prefix: string): Promise<unknown> {
    return this.#ask(`create ${prefix}`);
  }

  delete(path: string): Promise<unknown> {
    return this.#ask(`delete ${path}`);
  }

  multi(
    operations: readonly { readonly wire: { readonly op: string; readonly request: { path: string } } }[],
  ) {
    return this.#ask(operations.map(({ wire }) => `${wire.op} ${wire.request.path}`).join(', '));
  }

  /** Has four transactions under way, each by itself: a tick each. */
  async fill(): Promise<Promise<unknown>[]> {
    const joined: Promise<unknown>[] = [];
    for (const folder of ['/a', '/b', '/c', '/d']) {
      joined.push(this.join(folder));
      await settle();
    }
    return joined;
  }

  /** Makes an entry in the queue `folder`. */
  join(folder: string, onSent = () => {}): Promise<unknown> {
    return madeBy(this.creation(folder, onSent));
  }

  /** The same, as what can be withdrawn. */
  creation(folder: string, onSent = () => {}): EntryCreation {
    return this.writes.create({ folder, prefix: `${folder}/e-`, data: 'me', acl: undefined, onSent });
  }

  async answer(index: number, value: unknown): Promise<void> {
    this.requests[index]!.answer.resolve(value);
    await settle();
  }

  async refuse(index: number, error: Error): Promise<void> {
    this.requests[index]!.answer.reject(error);
    await settle();
  }

  /** What is thrown instead of sending that, if anything is. */
  refuseToSend: (what: string) => Error | undefined = () => undefined;

  #ask(what: string): Promise<unknown> {
    const refusal = this.refuseToSend(what);
    if (refusal) throw refusal;
    const answer = deferred<unknown>();
    this.requests.push({ what, answer });
    return answer.promise;
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const made = (path: string, czxid: bigint) => ({ path, stat: { czxid } });

describe('writes to queues', () => {
  test('of one tick are one transaction, each with its own result', async () => {
    const asked = new Asked();
    const joined = asked.join('/a');
    const passed = asked.writes.multi(() => [
      ops.create('/batons/e-1'),
      ops.delete('/batons/e-1'),
      ops.delete('/b/e-1'),
    ]);
    const left = asked.writes.delete('/c/e-1');
    const joinedToo = asked.join('/d');
    expect(asked.log).toEqual([]);
    await settle();
    expect(asked.log).toEqual([
      'create2 /a/e-, create2 /batons/e-1, delete /batons/e-1, delete /b/e-1, delete /c/e-1, create2 /d/e-',
    ]);
    const results = ['/a/e-0', '/batons/e-1', undefined, undefined, undefined, '/d/e-0'];
    await asked.answer(
      0,
      results.map((path) => path && { path, czxid: 2n }),
    );
    expect(await Promise.all([joined, joinedToo])).toEqual([
      { path: '/a/e-0', czxid: 2n },
      { path: '/d/e-0', czxid: 2n },
    ]);
    await Promise.all([passed, left]);
  });

  test('wait while some are under way, and go together when one of those is answered', async () => {
    const asked = new Asked();
    const [first] = await asked.fill();
    const joined = ['/e', '/f'].map((folder) => asked.join(folder));
    await settle();
    const left = asked.writes.delete('/x/e-1');
    await settle();
    expect(asked.log).toEqual(['create /a/e-', 'create /b/e-', 'create /c/e-', 'create /d/e-']);
    await asked.answer(0, made('/a/e-0', 1n));
    expect(asked.log.slice(4)).toEqual(['create2 /e/e-, create2 /f/e-, delete /x/e-1']);
    await asked.answer(4, [{ path: '/e/e-0', czxid: 2n }, { path: '/f/e-0', czxid: 2n }, undefined]);
    expect(await Promise.all([first, ...joined, left])).toEqual([
      { path: '/a/e-0', czxid: 1n },
      { path: '/e/e-0', czxid: 2n },
      { path: '/f/e-0', czxid: 2n },
      undefined,
    ]);
  });

  test('that are many do not all wait for the end of the tick', async () => {
    const asked = new Asked();
    const foldersOf = (count: number) => Array.from({ length: count }, (_, index) => `/q${index}`);
    let sentCount = 0;
    for (const folder of foldersOf(16)) void asked.join(folder, () => sentCount++);
    expect(asked.flushed).toEqual([1]); // One transaction, on its way while the others are made.
    expect(sentCount).toBe(16);
    for (const folder of foldersOf(31).slice(16)) void asked.join(folder);
    expect(asked.requests).toHaveLength(1);
    await settle();
    expect(asked.log.map((text) => text.split(', ').length)).toEqual([16, 15]);
    expect(asked.flushed).toEqual([1]);
  });

  test('leave early by halves of what a session has open at once', async () => {
    const asked = new Asked();
    const lengths = () => asked.log.map((text) => text.split(', ').length);
    const deleteMany = (count: number) => {
      for (let index = 0; index < count; index++) void asked.writes.delete(`/q/e-${index}`);
    };
    deleteMany(100);
    await settle();
    expect(lengths()).toEqual([16, 16, 16, 24]); // Four under way; the others wait for an answer.
    for (const index of [0, 1, 2, 3, 4]) await asked.answer(index, []);
    expect(lengths()).toEqual([16, 16, 16, 24, 28]);
    deleteMany(100);
    expect(lengths().slice(5)).toEqual([42, 42]);
  });

  test('of which one cannot be sent do not fail with it', async () => {
    const asked = new Asked();
    const tooLong = new RangeError('multi: a request of 1160000 bytes');
    asked.refuseToSend = (what) => (what.includes('/long') ? tooLong : undefined);
    const joined = asked.join('/a');
    const refused = asked.writes.delete('/long');
    const left = asked.writes.delete('/b/e-1');
    const ended = expect(refused).rejects.toBe(tooLong);
    await settle();
    expect(asked.log).toEqual(['create /a/e-', 'delete /b/e-1']);
    await asked.answer(0, made('/a/e-0', 1n));
    await asked.answer(1, undefined);
    expect(await joined).toEqual({ path: '/a/e-0', czxid: 1n });
    await left;
    await ended;
    const later = asked.writes.delete('/c/e-1');
    await settle();
    await asked.answer(2, undefined);
    await later;
  });

  test('go together up to 128 KiB, with all that they are made of', async () => {
    const asked = new Asked();
    const path = `/q/${'é'.repeat(16_384)}`; // Two bytes each: five are more than 128 KiB, four are not.
    for (let count = 0; count < 5; count++) {
      void asked.writes.multi(() => [ops.check(path)]);
    }
    await settle();
    expect(asked.log.map((what) => what.split(', ').length)).toEqual([3, 2]);
  });

  test('never make two entries of one queue in one transaction', async () => {
    const asked = new Asked();
    for (const folder of ['/a', '/a', '/b', '/a']) void asked.join(folder);
    await settle();
    expect(asked.log).toEqual(['create2 /a/e-, create2 /b/e-', 'create /a/e-', 'create /a/e-']);
    // Nor while one is under way; after it, as if there had been none.
    void asked.join('/a');
    await settle();
    expect(asked.log.slice(3)).toEqual(['create /a/e-']);
    await asked.answer(0, [
      { path: '/a/e-0', czxid: 1n },
      { path: '/b/e-0', czxid: 1n },
    ]);
    void asked.join('/a');
    void asked.join('/b');
    await settle();
    expect(asked.log.slice(4)).toEqual(['create2 /a/e-, create2 /b/e-']);
  });

  test('tell when they are sent, so that what follows is answered after them', async () => {
    const asked = new Asked();
    const sent: string[] = [];
    void (await asked.fill());
    for (const folder of ['/e', '/f']) void asked.join(folder, () => sent.push(folder));
    await settle();
    expect(sent).toEqual([]);
    await asked.answer(2, made('/c/e-0', 1n));
    expect(sent).toEqual(['/e', '/f']);
  });

  test('that were refused together are each sent by themselves', async () => {
    const asked = new Asked();
    let sentCount = 0;
    const joined = asked.join('/e', () => sentCount++);
    const left = asked.writes.delete('/x/gone');
    const passed = asked.writes.multi(() => [ops.create('/batons/e-1'), ops.delete('/b/e-1')]);
    left.catch(() => {});
    await settle();
    await asked.refuse(0, new MultiError(errorCodes['no-node'], 'multi', '/x/gone', 1));
    expect(asked.log.slice(1)).toEqual([
      'create /e/e-',
      'delete /x/gone',
      'create2 /batons/e-1, delete /b/e-1',
    ]);
    expect(sentCount).toBe(2);
    await asked.answer(1, made('/e/e-0', 7n));
    await asked.refuse(2, new ServerError(errorCodes['no-node'], 'delete', '/x/gone'));
    await asked.answer(3, []);
    expect(await joined).toEqual({ path: '/e/e-0', czxid: 7n });
    await expect(left).rejects.toMatchObject({ code: 'ZK_NO_NODE' });
    await passed;
  });

  // Seed 38539 of the simulation: an acquire that had been aborted made its entry after all.
  test('that were refused together are not sent by themselves once they have been given up', async () => {
    const asked = new Asked();
    const [kept, dropped] = ['/e', '/f'].map((folder) => asked.creation(folder));
    const joined = [kept!, dropped!].map(madeBy);
    const left = asked.writes.delete('/x/e-1');
    await settle();
    asked.writes.withdraw(dropped!, new Error('given up'));
    const ended = expect(joined[1]).rejects.toThrow('given up');
    await asked.refuse(0, new MultiError(errorCodes['no-node'], 'multi', '/x/e-1', 2));
    await ended;
    expect(asked.log.slice(1)).toEqual(['create /e/e-', 'delete /x/e-1']);
    await asked.answer(1, { path: '/e/e-0', stat: { czxid: 2n } });
    expect(await joined[0]).toEqual({ path: '/e/e-0', czxid: 2n });
    await asked.answer(2, undefined);
    await left;
  });

  test('that are taken back before they are asked for are never sent', async () => {
    const asked = new Asked();
    expect(await asked.fill()).toHaveLength(4);
    const [first, apart, other] = ['/e', '/e', '/f'].map((folder) => asked.creation(folder));
    const joined = [first!, apart!, other!].map(madeBy);
    const ended = joined.slice(0, 2).map((each) => expect(each).rejects.toThrow('given up'));
    for (const creation of [first!, apart!]) asked.writes.withdraw(creation, new Error('given up'));
    await Promise.all(ended);
    void asked.join('/e'); // As if there had been none before.
    await asked.answer(0, made('/a/e-0', 1n));
    expect(asked.log.slice(4)).toEqual(['create2 /f/e-, create2 /e/e-']);
    asked.writes.withdraw(other!, new Error('too late'));
    await asked.answer(4, [
      { path: '/f/e-0', czxid: 2n },
      { path: '/e/e-0', czxid: 2n },
    ]);
    expect(await joined[2]).toEqual({ path: '/f/e-0', czxid: 2n });
  });

  test('that could not leave with the connection that has ended wait for the next one', async () => {
    const asked = new Asked();
    let sentCount = 0;
    const [kept, dropped] = ['/e', '/f'].map((folder) => asked.creation(folder, () => sentCount++));
    const joined = [kept!, dropped!].map(madeBy);
    const left = asked.writes.delete('/x/e-1');
    await settle();
    asked.writes.withdraw(dropped!, new Error('given up'));
    const ended = expect(joined[1]).rejects.toThrow('given up');
    await asked.refuse(0, new ConnectionLossError('multi', 'not-applied'));
    await ended;
    expect(asked.log).toEqual([
      'create2 /e/e-, create2 /f/e-, delete /x/e-1',
      'create2 /e/e-, delete /x/e-1',
    ]);
    expect(sentCount).toBe(3);
    await asked.answer(1, [{ path: '/e/e-0', czxid: 2n }, undefined]);
    expect(await joined[0]).toEqual({ path: '/e/e-0', czxid: 2n });
    await left;
  });

  test('whose connection was lost all say so, and make room for others', async () => {
    const asked = new Asked();
    const first = await asked.fill();
    const together = ['/e', '/f'].map((folder) => asked.join(folder));
    for (const each of [...first, ...together]) each.catch(() => {});
    await asked.answer(0, made('/a/e-0', 1n));
    const lost = new ConnectionLossError('multi', 'unknown');
    for (const index of [1, 2, 3, 4]) await asked.refuse(index, lost);
    for (const each of [...first.slice(1), ...together]) await expect(each).rejects.toBe(lost);
    void asked.join('/e');
    await settle();
    expect(asked.log.at(-1)).toBe('create /e/e-');
  });
});
