import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { onceAborted, orAbort, sleep } from './abort.ts';
import type { Clock } from './clock.ts';
import { deferred } from './deferred.ts';

const listenerCount = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
const reason = { it: 'may be anything' };

describe('a promise or an abort', () => {
  test('gives the value, and leaves no listener behind', async () => {
    const { signal } = new AbortController();
    const value = deferred<string>();
    const waiting = orAbort(value.promise, signal);
    expect(listenerCount(signal)).toBe(1);
    value.resolve('value');
    expect(await waiting).toBe('value');
    expect(listenerCount(signal)).toBe(0);
  });

  test('fails as the promise fails, and leaves no listener behind', async () => {
    const { signal } = new AbortController();
    const failure = new Error('failed');
    await expect(orAbort(Promise.reject(failure), signal)).rejects.toBe(failure);
    expect(listenerCount(signal)).toBe(0);
  });

  test("rejects with the signal's own reason, and leaves no listener behind", async () => {
    const controller = new AbortController();
    const waiting = orAbort(new Promise(() => {}), controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(listenerCount(controller.signal)).toBe(0);
  });

  test('rejects at once if the signal has fired already, even if the promise is settled', async () => {
    const signal = AbortSignal.abort(reason);
    await expect(orAbort(Promise.resolve('value'), signal)).rejects.toBe(reason);
    await expect(orAbort(new Promise(() => {}), signal)).rejects.toBe(reason);
    expect(listenerCount(signal)).toBe(0);
  });

  test('is the promise alone if there is no signal', async () => {
    expect(await orAbort(Promise.resolve('value'), undefined)).toBe('value');
    await expect(orAbort(Promise.reject(reason), undefined)).rejects.toBe(reason);
  });

  test('swallows a failure that comes after the abort', async () => {
    const unhandled = await unhandledDuring(async () => {
      const controller = new AbortController();
      const late = deferred<never>();
      const waiting = orAbort(late.promise, controller.signal);
      controller.abort(reason);
      await expect(waiting).rejects.toBe(reason);
      late.reject(new Error('too late'));
    });
    expect(unhandled).toEqual([]);
  });

  test('swallows the failure of a promise it was given after the abort', async () => {
    const unhandled = await unhandledDuring(async () => {
      const failed = Promise.reject(new Error('late'));
      await expect(orAbort(failed, AbortSignal.abort(reason))).rejects.toBe(reason);
    });
    expect(unhandled).toEqual([]);
  });

  test('does not let a thousand waits on one signal pile up', async () => {
    const { signal } = new AbortController();
    for (let count = 0; count < 1_000; count++) await orAbort(Promise.resolve(), signal);
    expect(listenerCount(signal)).toBe(0);
  });
});

describe('calls when a signal fires', () => {
  test('share one listener, however many there are', () => {
    const controller = new AbortController();
    const called: number[] = [];
    const stops = Array.from({ length: 1_000 }, (_, index) =>
      onceAborted(controller.signal, () => called.push(index)),
    );
    expect(listenerCount(controller.signal)).toBe(1);
    for (const stop of stops.splice(2)) stop();
    controller.abort();
    expect(called).toEqual([0, 1]);
    for (const stop of stops) stop();
    expect(listenerCount(controller.signal)).toBe(0);
  });

  test('are not made once another of them has taken them back', () => {
    const controller = new AbortController();
    const called: string[] = [];
    onceAborted(controller.signal, () => {
      called.push('first');
      stopSecond();
    });
    const stopSecond = onceAborted(controller.signal, () => called.push('second'));
    controller.abort();
    expect(called).toEqual(['first']);
  });
});

/** What nobody handled while `run` ran and in the turn of the event loop after it. */
async function unhandledDuring(run: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (error) => unhandled.push(error));
  try {
    await run();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const listener of others) process.on('unhandledRejection', listener);
  }
  return unhandled;
}

/** A clock that moves when told to. */
class ManualClock implements Clock {
  wallMs(): number {
    return 0;
  }

  #now = 500;
  #scheduled: { atMs: number; run: () => void }[] = [];

  get scheduledCount(): number {
    return this.#scheduled.length;
  }

  nowMs(): number {
    return this.#now;
  }

  at(atMs: number, run: () => void): () => void {
    const entry = { atMs, run };
    this.#scheduled.push(entry);
    return () => {
      this.#scheduled = this.#scheduled.filter((each) => each !== entry);
    };
  }

  endOfTick(): void {}

  afterTick(): void {}

  afterInput(): void {}

  advance(ms: number): void {
    this.#now += ms;
    const due = this.#scheduled.filter(({ atMs }) => atMs <= this.#now);
    this.#scheduled = this.#scheduled.filter(({ atMs }) => atMs > this.#now);
    for (const { run } of due) run();
  }
}

describe('a sleep', () => {
  /** Whether the promise is settled by now. */
  async function isSettled(promise: Promise<unknown>): Promise<boolean> {
    const pending = Symbol('pending');
    return (await Promise.race([promise.catch(() => {}), Promise.resolve(pending)])) !== pending;
  }

  test('lasts as long as asked on the given clock, and leaves no listener behind', async () => {
    const clock = new ManualClock();
    const { signal } = new AbortController();
    const sleeping = sleep(clock, 100, signal);
    expect(listenerCount(signal)).toBe(1);
    clock.advance(99);
    expect(await isSettled(sleeping)).toBe(false);
    clock.advance(1);
    await sleeping;
    expect(listenerCount(signal)).toBe(0);
    expect(clock.scheduledCount).toBe(0);
  });

  test("ends early with the signal's own reason, and leaves neither listener nor timer behind", async () => {
    const clock = new ManualClock();
    const controller = new AbortController();
    const sleeping = sleep(clock, 100, controller.signal);
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    expect(listenerCount(controller.signal)).toBe(0);
    expect(clock.scheduledCount).toBe(0);
  });

  test('does not begin if the signal has fired already', async () => {
    const clock = new ManualClock();
    const signal = AbortSignal.abort(reason);
    await expect(sleep(clock, 100, signal)).rejects.toBe(reason);
    expect(listenerCount(signal)).toBe(0);
    expect(clock.scheduledCount).toBe(0);
  });

  test('needs no signal', async () => {
    const clock = new ManualClock();
    const sleeping = sleep(clock, 0);
    expect(await isSettled(sleeping)).toBe(false);
    clock.advance(0);
    await sleeping;
  });

  test('is not disturbed by an abort that comes after it', async () => {
    const clock = new ManualClock();
    const controller = new AbortController();
    const sleeping = sleep(clock, 1, controller.signal);
    clock.advance(1);
    controller.abort(reason);
    await expect(sleeping).resolves.toBeUndefined();
  });
});
