import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { TaskQueue } from './task-queue.ts';

describe('tasks that wait in one process', () => {
  test('are granted in order, and leave no listener', async () => {
    const tasks = new TaskQueue<string, number>();
    const { signal } = new AbortController();
    const waiting = ['a', 'b'].map((wish) => tasks.wait(wish, signal, () => {}));
    expect(tasks.shift()!.wish).toBe('a');
    const [second] = tasks.drain();
    second!.grant(2);
    expect(await waiting[1]).toBe(2);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  });

  test('are out of the queue when their signal fires', async () => {
    const tasks = new TaskQueue<string, number>();
    const controller = new AbortController();
    let goneCount = 0;
    const waiting = tasks.wait('a', controller.signal, () => goneCount++);
    controller.abort(new Error('given up'));
    await expect(waiting).rejects.toThrow('given up');
    expect([tasks.length, goneCount]).toEqual([0, 1]);
  });

  // Its event has been, and does not come again: it would wait for ever
  test('do not wait if their signal has fired before', async () => {
    const tasks = new TaskQueue<string, number>();
    const waiting = tasks.wait('a', AbortSignal.abort(new Error('before')), () => {});
    const outcome = await Promise.race([
      waiting.catch((error: Error) => error.message),
      new Promise((resolve) => setImmediate(() => resolve('it waits'))),
    ]);
    expect(outcome).toBe('before');
    expect(tasks.length).toBe(0);
  });
});
