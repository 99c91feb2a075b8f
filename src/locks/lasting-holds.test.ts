import { describe, expect, test, vi } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { LastingHolds } from './lasting-holds.ts';

function scene() {
  const clock = new VirtualClock();
  const holds = new LastingHolds(clock, 100);
  const told: string[] = [];
  const begin = (name: string) =>
    holds.add({ grantedAtMs: clock.nowMs(), lasted: () => void told.push(`${name} ${clock.nowMs()}`) });
  return { clock, holds, told, begin };
}

describe('holds that last', () => {
  test('are told so, each at its own time', async () => {
    const { clock, told, begin } = scene();
    begin('a');
    await clock.advance(30);
    begin('b');
    begin('c');
    await clock.advance(30);
    begin('d');
    await clock.advance(500);
    expect(told).toEqual(['a 100', 'b 130', 'c 130', 'd 160']);
    expect(clock.alarmCount).toBe(0);
  });

  test('are not told once they have ended, and share one timer', async () => {
    const { clock, told, begin } = scene();
    for (let count = 0; count < 50; count++) {
      const hold = begin('short');
      expect(clock.alarmCount).toBe(1);
      await clock.advance(1);
      hold.remove();
    }
    const last = begin('long');
    await clock.advance(99);
    expect(told).toEqual([]);
    await clock.advance(1);
    expect(told).toEqual(['long 150']);
    last.remove();
    await clock.advance(1_000);
    expect(clock.alarmCount).toBe(0);
  });

  // Found by the simulation: 100.1 - 100 is less than 0.1, and the timer was set again and again for the same moment.
  test('are told so at any fraction of a millisecond', async () => {
    const { clock, told, begin } = scene();
    await clock.advance(0.1);
    begin('a');
    let looks = 0;
    const at = vi.spyOn(clock, 'at').mockImplementation((...alarm) => {
      if (++looks > 3) throw new Error('it goes round in circles');
      return VirtualClock.prototype.at.apply(clock, alarm);
    });
    await clock.advance(200);
    at.mockRestore();
    expect(told).toEqual(['a 100.1']);
  });

  test('leave no timer when the connection is closed', () => {
    const { clock, holds, begin } = scene();
    begin('a');
    holds.end();
    expect(clock.alarmCount).toBe(0);
  });
});
