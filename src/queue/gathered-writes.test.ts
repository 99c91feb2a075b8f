import { describe, expect, test } from 'vitest';
import { type Deferred, deferred } from '../base/deferred.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ConnectionLossError, MultiError, ServerError } from '../protocol/errors.ts';
import { GatheredWrites } from './gathered-writes.ts';

/** A client that writes down what it is asked for, and answers when it is told to. */
class Asked {
  readonly requests: { readonly what: string; readonly answer: Deferred<unknown> }[] = [];
  readonly writes = new GatheredWrites(this as unknown as ZooKeeper, {} as Session);

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

  /** Makes an entry in the queue `folder`. */
  join(folder: string, onSent = () => {}): Promise<unknown> {
    return this.writes.create({ folder, prefix: `${folder}/e-`, data: 'me' }, onSent);
  }

  async answer(index: number, value: unknown): Promise<void> {
    this.requests[index]!.answer.resolve(value);
    await settle();
  }

  async refuse(index: number, error: Error): Promise<void> {
    this.requests[index]!.answer.reject(error);
    await settle();
  }

  #ask(what: string): Promise<unknown> {
    const answer = deferred<unknown>();
    this.requests.push({ what, answer });
    return answer.promise;
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const made = (path: string, czxid: bigint) => ({ path, stat: { czxid } });

describe('writes to queues', () => {
  test('are sent one by one while few are under way, and together when one of those is answered', async () => {
    const asked = new Asked();
    const joined = ['/a', '/b', '/c', '/d', '/e', '/f'].map((folder) => asked.join(folder));
    const left = asked.writes.delete('/x/e-1');
    expect(asked.log).toEqual(['create /a/e-', 'create /b/e-', 'create /c/e-', 'create /d/e-']);
    await asked.answer(0, made('/a/e-0', 1n));
    expect(asked.log.slice(4)).toEqual(['create2 /e/e-, create2 /f/e-, delete /x/e-1']);
    await asked.answer(4, [{ path: '/e/e-0', czxid: 2n }, { path: '/f/e-0', czxid: 2n }, undefined]);
    expect(await Promise.all([joined[0], joined[4], joined[5], left])).toEqual([
      { path: '/a/e-0', czxid: 1n },
      { path: '/e/e-0', czxid: 2n },
      { path: '/f/e-0', czxid: 2n },
      undefined,
    ]);
  });

  test('never make two entries of one queue in one transaction', async () => {
    const asked = new Asked();
    for (const folder of ['/a', '/b', '/c', '/d', '/e', '/e', '/e']) void asked.join(folder);
    // The first for /e waits; the others go ahead by themselves.
    expect(asked.log).toEqual([
      'create /a/e-',
      'create /b/e-',
      'create /c/e-',
      'create /d/e-',
      'create /e/e-',
      'create /e/e-',
    ]);
    await asked.answer(0, made('/a/e-0', 1n));
    expect(asked.log.slice(6)).toEqual(['create /e/e-']);
  });

  test('tell when they are sent, so that what follows is answered after them', async () => {
    const asked = new Asked();
    const sent: string[] = [];
    for (const folder of ['/a', '/b', '/c', '/d', '/e', '/f'])
      void asked.join(folder, () => sent.push(folder));
    expect(sent).toEqual(['/a', '/b', '/c', '/d']);
    await asked.answer(2, made('/c/e-0', 1n));
    expect(sent).toEqual(['/a', '/b', '/c', '/d', '/e', '/f']);
  });

  test('that were refused together are each sent by themselves', async () => {
    const asked = new Asked();
    for (const folder of ['/a', '/b', '/c', '/d']) void asked.join(folder);
    let sentCount = 0;
    const joined = asked.join('/e', () => sentCount++);
    const left = asked.writes.delete('/x/gone');
    left.catch(() => {});
    await asked.answer(0, made('/a/e-0', 1n));
    await asked.refuse(4, new MultiError(errorCodes['no-node'], 'multi', '/x/gone', 1));
    expect(asked.log.slice(5)).toEqual(['create /e/e-', 'delete /x/gone']);
    expect(sentCount).toBe(2);
    await asked.answer(5, made('/e/e-0', 7n));
    await asked.refuse(6, new ServerError(errorCodes['no-node'], 'delete', '/x/gone'));
    expect(await joined).toEqual({ path: '/e/e-0', czxid: 7n });
    await expect(left).rejects.toMatchObject({ code: 'ZK_NO_NODE' });
  });

  test('whose connection was lost all say so, and make room for others', async () => {
    const asked = new Asked();
    const first = ['/a', '/b', '/c', '/d'].map((folder) => asked.join(folder));
    const together = ['/e', '/f'].map((folder) => asked.join(folder));
    for (const each of [...first, ...together]) each.catch(() => {});
    await asked.answer(0, made('/a/e-0', 1n));
    const lost = new ConnectionLossError('multi', 'unknown');
    for (const index of [1, 2, 3, 4]) await asked.refuse(index, lost);
    for (const each of [...first.slice(1), ...together]) await expect(each).rejects.toBe(lost);
    void asked.join('/e');
    expect(asked.log.at(-1)).toBe('create /e/e-');
  });
});
