import { expect, test } from 'vitest';
import { orAbort } from './abort.ts';
import { endableGenerator } from './endable-generator.ts';

const never = new Promise<void>(() => {});

/** Counts up, and then waits for ever. */
function counting(countMax: number, onEnd: () => void = () => {}) {
  return endableGenerator(async function* (ended) {
    try {
      for (let count = 1; count <= countMax; count++) yield count;
      await orAbort(never, ended);
    } finally {
      onEnd();
    }
  });
}

test('return ends a next that waits, and what the generator set up is taken back', async () => {
  let ended = 0;
  const numbers = counting(1, () => ended++);
  expect(await numbers.next()).toEqual({ value: 1, done: false });
  const [waiting, alsoWaiting] = [numbers.next(), numbers.next()];
  expect(await numbers.return(undefined)).toEqual({ value: undefined, done: true });
  expect(await waiting).toEqual({ value: undefined, done: true });
  expect(await alsoWaiting).toEqual({ value: undefined, done: true });
  expect(await numbers.next()).toEqual({ value: undefined, done: true });
  expect(ended).toBe(1);
});

test('return before the first next runs nothing', async () => {
  let ended = 0;
  const numbers = counting(1, () => ended++);
  await numbers.return(undefined);
  expect(await numbers.next()).toEqual({ value: undefined, done: true });
  expect(ended).toBe(0);
});

test('throw ends a next that waits, and rejects with what was thrown', async () => {
  const numbers = counting(0);
  const waiting = numbers.next();
  await expect(numbers.throw(new Error('thrown'))).rejects.toThrow('thrown');
  expect(await waiting).toEqual({ value: undefined, done: true });
});

test('what the generator throws by itself reaches the caller of next', async () => {
  const failing = endableGenerator<number>(async function* () {
    yield 1;
    throw new Error('its own');
  });
  await failing.next();
  await expect(failing.next()).rejects.toThrow('its own');
});

test('leaving a loop, and disposal, end it', async () => {
  let ended = 0;
  for await (const count of counting(3, () => ended++)) if (count === 2) break;
  {
    await using numbers = counting(3, () => ended++);
    await numbers.next();
  }
  expect(ended).toBe(2);
});
