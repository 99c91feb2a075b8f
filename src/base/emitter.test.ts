import { describe, expect, test } from 'vitest';
import { Emitter, runSafely } from './emitter.ts';

interface Events {
  changed: string;
  ended: undefined;
}

/** An emitter with everything its listeners did wrong. */
function world() {
  const errors: [unknown, keyof Events][] = [];
  const emitter = new Emitter<Events>((error, name) => errors.push([error, name]));
  return { emitter, errors };
}

/** A timer comes after every microtask, however long their chain. */
const microtasksDone = () => new Promise((resolve) => setImmediate(resolve));

describe('a listener', () => {
  test('is never called inside emit', async () => {
    const { emitter } = world();
    const heard: string[] = [];
    emitter.on('changed', (event) => heard.push(event));
    emitter.emit('changed', 'a');
    heard.push('emit returned');
    await microtasksDone();
    expect(heard).toEqual(['emit returned', 'a']);
  });

  test('hears events in order, after the listeners added before it', async () => {
    const { emitter } = world();
    const heard: string[] = [];
    for (const name of ['first', 'second', 'third']) {
      emitter.on('changed', (event) => heard.push(`${name} ${event}`));
    }
    emitter.emit('changed', 'a');
    emitter.emit('changed', 'b');
    await microtasksDone();
    expect(heard).toEqual(['first a', 'second a', 'third a', 'first b', 'second b', 'third b']);
  });

  test('hears only the events it asked for', async () => {
    const { emitter } = world();
    const heard: unknown[] = [];
    emitter.on('ended', (event) => heard.push(event));
    emitter.emit('changed', 'a');
    await microtasksDone();
    expect(heard).toEqual([]);
  });

  test('added twice is called once', async () => {
    const { emitter } = world();
    const heard: string[] = [];
    const listener = (event: string) => heard.push(event);
    emitter.on('changed', listener);
    emitter.on('changed', listener);
    emitter.emit('changed', 'a');
    await microtasksDone();
    expect(heard).toEqual(['a']);
  });

  test.each([
    ['by what on() returned', (_: Emitter<Events>, remove: () => void) => remove()],
    ['by removeAll()', (emitter: Emitter<Events>) => emitter.removeAll()],
    [
      'by off()',
      (emitter: Emitter<Events>, _: () => void, listener: () => void) => emitter.off('changed', listener),
    ],
  ])('removed %s hears no more', async (_, removeBy) => {
    const { emitter } = world();
    let count = 0;
    const listener = () => count++;
    const remove = emitter.on('changed', listener);
    emitter.emit('changed', 'a');
    await microtasksDone();
    removeBy(emitter, remove, listener);
    remove(); // A second time does nothing.
    emitter.emit('changed', 'b');
    await microtasksDone();
    expect(count).toBe(1);
  });

  test('added or removed by another one takes part from the next event on', async () => {
    const { emitter } = world();
    const heard: string[] = [];
    const removeLast = () => removers.pop()?.();
    const removers: (() => void)[] = [];
    emitter.on('changed', (event) => {
      heard.push(`first ${event}`);
      emitter.on('changed', late);
      removeLast();
    });
    const late = (event: string) => heard.push(`late ${event}`);
    removers.push(emitter.on('changed', (event) => heard.push(`last ${event}`)));
    emitter.emit('changed', 'a');
    await microtasksDone();
    emitter.emit('changed', 'b');
    await microtasksDone();
    expect(heard).toEqual(['first a', 'last a', 'first b', 'late b']);
  });

  test('that throws is reported and hurts neither the emitter nor the others', async () => {
    const { emitter, errors } = world();
    const heard: string[] = [];
    const thrown = new Error('thrown');
    emitter.on('changed', () => {
      throw thrown;
    });
    emitter.on('changed', (event) => heard.push(event));
    emitter.emit('changed', 'a');
    emitter.emit('changed', 'b');
    await microtasksDone();
    expect(heard).toEqual(['a', 'b']);
    expect(errors).toEqual([
      [thrown, 'changed'],
      [thrown, 'changed'],
    ]);
  });

  test('that rejects is reported and hurts neither the emitter nor the others', async () => {
    const { emitter, errors } = world();
    const heard: unknown[] = [];
    const rejected = new Error('rejected');
    emitter.on('ended', async () => {
      throw rejected;
    });
    emitter.on('ended', () => heard.push('called'));
    emitter.emit('ended', undefined);
    await microtasksDone();
    expect(heard).toEqual(['called']);
    expect(errors).toEqual([[rejected, 'ended']]);
  });

  test('that never settles holds nobody up', async () => {
    const { emitter } = world();
    const heard: string[] = [];
    emitter.on('changed', () => new Promise(() => {}));
    emitter.on('changed', (event) => heard.push(event));
    emitter.emit('changed', 'a');
    await microtasksDone();
    expect(heard).toEqual(['a']);
  });
});

test('an event nobody listens to is nothing', () => {
  const { emitter, errors } = world();
  emitter.emit('changed', 'a');
  expect(errors).toEqual([]);
});

describe('foreign code run safely', () => {
  test.each<[string, (value: number) => unknown]>([
    [
      'throws',
      () => {
        throw 'what it failed with';
      },
    ],
    ['rejects', () => Promise.reject('what it failed with')],
  ])('that %s tells its own handler and no other', async (_, run) => {
    const errors: unknown[] = [];
    runSafely(run, 1, (error) => errors.push(error));
    expect(errors).toEqual([]);
    await microtasksDone();
    expect(errors).toEqual(['what it failed with']);
  });
});
