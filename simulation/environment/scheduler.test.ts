import { describe, expect, test } from 'vitest';
import { Scheduler } from './scheduler.ts';
import { SimulatedProcess } from './simulated-process.ts';

/** Where no promise reaction is running. */
function inMacrotask(run: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        run();
        resolve();
      } catch (error) {
        reject(error);
      }
    });
  });
}

describe('the scheduler', () => {
  test('lets things happen in the order of their times, then of their asking', () =>
    inMacrotask(() => {
      const scheduler = new Scheduler(() => {});
      const seen: string[] = [];
      for (const [atMs, name] of [
        [3, 'c'],
        [1, 'a'],
        [3, 'd'],
        [2, 'b'],
      ] as const) {
        scheduler.at(atMs, () => seen.push(`${name}${scheduler.nowMs}`));
      }
      scheduler.at(2, () => seen.push('never'))();
      while (scheduler.step());
      expect(seen).toEqual(['a1', 'b2', 'c3', 'd3']);
      expect(scheduler.stepCount).toBe(4);
    }));

  test('lets the reactions to an occurrence and to what is done beside it take turns', () =>
    inMacrotask(() => {
      const scheduler = new Scheduler(() => {});
      const seen: string[] = [];
      const tell = async (name: string) => {
        for (let reaction = 0; reaction < 2; reaction++) {
          seen.push(`${name}${reaction}`);
          await undefined;
        }
      };
      scheduler.at(1, () => void tell('event '));
      scheduler.step(1, [() => void tell('user ')]);
      expect(seen).toEqual(['event 0', 'user 0', 'event 1', 'user 1']);
    }));

  test('runs every promise reaction, then what was to come at the end of the tick, before the next', () =>
    inMacrotask(() => {
      const scheduler = new Scheduler(() => {});
      const seen: string[] = [];
      scheduler.at(1, () => {
        scheduler.endOfTick(() => seen.push('end of tick'));
        void (async () => {
          await undefined;
          await undefined;
          seen.push('reaction');
        })();
      });
      scheduler.at(1, () => seen.push('next'));
      while (scheduler.step());
      expect(seen).toEqual(['reaction', 'end of tick', 'next']);
    }));

  test('goes on when something throws, and tells', () =>
    inMacrotask(() => {
      const failures: unknown[] = [];
      const scheduler = new Scheduler((error) => failures.push(error));
      const seen: number[] = [];
      scheduler.at(1, () => {
        throw new Error('one');
      });
      scheduler.at(2, () => seen.push(2));
      while (scheduler.step());
      expect(seen).toEqual([2]);
      expect(failures).toEqual([new Error('one')]);
    }));
});

describe('a simulated process', () => {
  test('has a clock of its own rate, whose alarms never go off early', () =>
    inMacrotask(() => {
      const scheduler = new Scheduler(() => {});
      const process = new SimulatedProcess(scheduler, { clockRate: 0.99 });
      let wentOffAtMs = 0;
      process.at(1_000, () => {
        wentOffAtMs = process.nowMs();
      });
      while (scheduler.step());
      expect(wentOffAtMs).toBeGreaterThanOrEqual(1_000);
      expect(scheduler.nowMs).toBeCloseTo(1_010.1, 1);
      expect(process.alarmCount).toBe(0);
    }));

  for (const first of ['alarms', 'inputs'] as const) {
    test(`does nothing while it stalls, and then all of it, ${first} first`, () =>
      inMacrotask(() => {
        const scheduler = new Scheduler(() => {});
        const process = new SimulatedProcess(scheduler);
        const seen: string[] = [];
        process.at(10, () => seen.push('alarms'));
        scheduler.at(5, () => process.stall());
        scheduler.at(8, () => process.input(() => seen.push('inputs')));
        scheduler.at(20, () => {
          expect(seen).toEqual([]);
          process.resume(first);
        });
        while (scheduler.step());
        expect(seen).toEqual(first === 'alarms' ? ['alarms', 'inputs'] : ['inputs', 'alarms']);
      }));
  }

  test('does nothing any more once it is dead', () =>
    inMacrotask(() => {
      const scheduler = new Scheduler(() => {});
      const process = new SimulatedProcess(scheduler);
      const seen: string[] = [];
      process.at(10, () => seen.push('alarm'));
      process.die();
      process.input(() => seen.push('input'));
      while (scheduler.step());
      expect(seen).toEqual([]);
    }));
});
