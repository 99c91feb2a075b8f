import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Clock, Deadline, systemClock } from './clock.ts';

describe('the system clock', () => {
  test('never goes backwards', () => {
    let last = systemClock.nowMs();
    for (let count = 0; count < 10_000; count++) {
      const now = systemClock.nowMs();
      if (now < last) expect.unreachable();
      last = now;
    }
  });

  test('is not moved by the wall clock', () => {
    const before = systemClock.nowMs();
    vi.spyOn(Date, 'now').mockReturnValue(0);
    expect(systemClock.nowMs() - before).toBeLessThan(10_000);
    expect(systemClock.nowMs()).toBeGreaterThanOrEqual(before);
  });

  test('calls no earlier than asked, by its own measure', async () => {
    const start = systemClock.nowMs();
    const waits = Array.from({ length: 40 }, (_, index) => start + index * 0.37);
    const earlyMs = await Promise.all(
      waits.map(
        (atMs) =>
          new Promise<number>((resolve) => systemClock.at(atMs, () => resolve(atMs - systemClock.nowMs()))),
      ),
    );
    expect(Math.max(...earlyMs)).toBeLessThanOrEqual(0);
  });

  test('calls later, not at once, for a time that is now or past', async () => {
    const calls: string[] = [];
    const called = new Promise<void>((resolve) => {
      systemClock.at(systemClock.nowMs() - 1_000, () => {
        calls.push('called');
        resolve();
      });
    });
    calls.push('at returned');
    await called;
    expect(calls).toEqual(['at returned', 'called']);
  });
});

describe('the system clock over timers', () => {
  let lookCount = 0;
  let lagMs = 0;
  beforeEach(() => {
    lookCount = 0;
    lagMs = 0;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: 0 });
    vi.spyOn(performance, 'now').mockImplementation(() => {
      // A timer too long for Node fires after a millisecond, and would be set again for ever.
      if (++lookCount > 1_000) throw new Error('the clock is looked at without end');
      return Date.now() - lagMs;
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Lets time pass for the timers; the clock falls behind them by `behindMs`. */
  function pass(ms: number, behindMs = 0) {
    lagMs = behindMs;
    vi.advanceTimersByTime(ms);
  }

  test('looks again when a timer fires before its time', () => {
    const run = vi.fn();
    systemClock.at(10, run);
    pass(10, 0.4);
    expect(run).not.toHaveBeenCalled();
    pass(1);
    expect(run).toHaveBeenCalledTimes(1);
  });

  test('rounds a fraction of a millisecond up', () => {
    const run = vi.fn();
    systemClock.at(10.2, run);
    pass(10);
    expect(run).not.toHaveBeenCalled();
    pass(1);
    expect(run).toHaveBeenCalledTimes(1);
  });

  test.each([2 ** 31 - 1, 2 ** 31, 2 ** 32, 90 * 24 * 3_600_000])(
    'waits %i ms without waking up before',
    (delayMs) => {
      const run = vi.fn();
      systemClock.at(delayMs, run);
      pass(1_000);
      expect(lookCount).toBe(1);
      pass(delayMs - 1_001);
      expect(run).not.toHaveBeenCalled();
      pass(1);
      expect(run).toHaveBeenCalledTimes(1);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  test('waits for ever if asked to', () => {
    const run = vi.fn();
    const cancel = systemClock.at(Number.POSITIVE_INFINITY, run);
    pass(2 ** 31);
    expect(run).not.toHaveBeenCalled();
    cancel();
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    ['a call that is due at once', 0, 0],
    ['a call that is due later', 100, 50],
    ['a call whose timer was set anew', 100, 99.5],
    ['a call beyond the longest timer', 2 ** 32, 2 ** 31],
  ])('cancels %s', (_, atMs, passedMs) => {
    const run = vi.fn();
    const cancel = systemClock.at(atMs, run);
    if (passedMs > 0) pass(Math.ceil(passedMs), Math.ceil(passedMs) - passedMs);
    cancel();
    cancel();
    expect(vi.getTimerCount()).toBe(0);
    pass(2 ** 20);
    expect(run).not.toHaveBeenCalled();
  });

  test('lets a call be cancelled after it was made', () => {
    const run = vi.fn();
    const cancel = systemClock.at(1, run);
    pass(1);
    cancel();
    expect(run).toHaveBeenCalledTimes(1);
  });
});

describe('the end of a tick', () => {
  const endOfTick = (calls: string[]) => systemClock.endOfTick(() => calls.push('end of tick'));
  /** A chain of promise reactions, each set off by the one before. */
  async function chain(calls: string[], name: string) {
    for (let step = 1; step <= 3; step++) {
      await null;
      calls.push(`${name} ${step}`);
    }
  }
  const reactions = ['before 1', 'after 1', 'before 2', 'after 2', 'before 3', 'after 3', 'end of tick'];

  test.each<[string, (run: () => void) => void]>([
    ['plain code', (run) => run()],
    ['a promise reaction', (run) => queueMicrotask(run)],
    ['a timer', (run) => setTimeout(run, 0)],
    ['a callback of the event loop', (run) => setImmediate(run)],
    ['a tick callback', (run) => process.nextTick(run)],
  ])('comes after every reaction set off by %s', async (_, from) => {
    const calls: string[] = [];
    await new Promise<void>((resolve) => {
      from(() => {
        void chain(calls, 'before');
        endOfTick(calls);
        void chain(calls, 'after');
        setImmediate(resolve);
      });
    });
    expect(calls).toEqual(reactions);
  });

  test('has those behind it who come last, also behind who began to wait when it had come', async () => {
    const calls: string[] = [];
    await new Promise<void>((resolve) => {
      systemClock.afterTick(() => {
        calls.push('last');
        systemClock.endOfTick(() => calls.push('next end'));
        systemClock.afterTick(resolve);
      });
      systemClock.endOfTick(() => {
        calls.push('first');
        queueMicrotask(() => calls.push('a reaction'));
        systemClock.endOfTick(() => calls.push('nested'));
      });
      queueMicrotask(() => calls.push('code of now'));
    });
    expect(calls).toEqual(['code of now', 'first', 'a reaction', 'nested', 'last', 'next end']);
  });

  test('comes for the others if one of them throws', async () => {
    const calls: string[] = [];
    const caught = new Promise((resolve) => process.once('uncaughtException', resolve));
    const listeners = process.listeners('uncaughtException').slice(0, -1);
    for (const listener of listeners) process.off('uncaughtException', listener);
    systemClock.endOfTick(() => {
      throw new Error('of one');
    });
    endOfTick(calls);
    expect(await caught).toMatchObject({ message: 'of one' });
    for (const listener of listeners) process.on('uncaughtException', listener);
    expect(calls).toEqual(['end of tick']);
  });

  test('comes before any timer or input', async () => {
    const calls: string[] = [];
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        calls.push('next turn');
        resolve();
      });
      endOfTick(calls);
    });
    expect(calls).toEqual(['end of tick', 'next turn']);
  });
});

describe('the end of the input that is there', () => {
  test('comes after all sockets that can be read have been', async () => {
    const calls: string[] = [];
    const { port1, port2 } = new MessageChannel();
    const { port1: port3, port2: port4 } = new MessageChannel();
    await new Promise<void>((resolve) => {
      const onInput = (name: string) => () => {
        calls.push(name);
        systemClock.endOfTick(() => calls.push('end of tick'));
        if (calls.length > 2) return;
        systemClock.afterInput(() => {
          calls.push('after input');
          resolve();
        });
      };
      port2.on('message', onInput('first'));
      port4.on('message', onInput('second'));
      port1.postMessage('');
      port3.postMessage('');
    });
    for (const port of [port1, port3]) port.close();
    expect(calls).toEqual(['first', 'end of tick', 'second', 'end of tick', 'after input']);
  });
});

describe('a deadline', () => {
  function clockAt(startMs: number) {
    const clock = {
      now: startMs,
      nowMs: () => clock.now,
      wallMs: () => 0,
      at: () => () => {},
      endOfTick: () => {},
      afterTick: () => {},
      afterInput: () => {},
    };
    return clock satisfies Clock;
  }

  test('is a point in time, however often the rest is asked for', () => {
    const clock = clockAt(1_000);
    const deadline = new Deadline(clock, 250);
    expect(deadline.atMs).toBe(1_250);
    expect(deadline.remainingMs()).toBe(250);
    clock.now = 1_100;
    expect(deadline.remainingMs()).toBe(150);
    expect(deadline.remainingMs()).toBe(150);
  });

  test('never has less than nothing left', () => {
    const clock = clockAt(0);
    const deadline = new Deadline(clock, 10);
    clock.now = 10;
    expect(deadline.remainingMs()).toBe(0);
    clock.now = 1_000_000;
    expect(deadline.remainingMs()).toBe(0);
  });
});
