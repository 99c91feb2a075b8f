import { expect, test } from 'vitest';
import { deferred } from '../../base/deferred.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import type { Console } from '../console.ts';
import { withProgress } from './progress.ts';

function stderr(isTTY: boolean): { stderr: Console['stderr']; written: string[] } {
  const written: string[] = [];
  const stream = { isTTY, columns: 40, write: (text: string) => written.push(text) };
  return { stderr: stream as unknown as Console['stderr'], written };
}

test('what takes long is told on a terminal, and the line goes away again', async () => {
  const clock = new VirtualClock();
  const { written, ...console } = stderr(true);
  const work = deferred<number>();
  const running = withProgress(
    console,
    'connecting',
    async (tell) => {
      tell('reading');
      return work.promise;
    },
    clock,
  );
  await clock.advance(400);
  expect(written).toEqual([]);
  await clock.advance(2_000);
  expect(written.join('')).toMatch(/reading \(2 s\)/);
  work.resolve(7);
  expect(await running).toBe(7);
  expect(written.at(-1)).toBe('\r\x1b[K');
  const count = written.length;
  await clock.advance(5_000);
  expect(written.length).toBe(count);
});

test('nothing is told where nobody looks, nor of what is quick', async () => {
  for (const isTTY of [true, false]) {
    const clock = new VirtualClock();
    const { written, ...console } = stderr(isTTY);
    await withProgress(
      console,
      'x',
      async () => {
        if (!isTTY) await clock.advance(10_000);
      },
      clock,
    );
    expect(written).toEqual([]);
  }
});
