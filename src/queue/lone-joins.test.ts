import { describe, expect, test } from 'vitest';
import { SEQUENCE_LAST } from './entry-name.ts';
import type { FolderWatch } from './folder-watches.ts';
import type { QueueEntry, QueueView } from './lock-queue.ts';
import { LoneJoins } from './lone-joins.ts';
import type { StoreSession } from './store-session.ts';

const SESSION = {} as StoreSession;

/** A folder with a counter, and one session that joins and leaves. */
class Scene {
  readonly watches: { isSet: boolean; isOver: boolean; use(): void }[] = [];
  /** Whether a watch is set at once. */
  setsWatches = true;
  next = 0;
  readonly #joins = new LoneJoins((): FolderWatch => {
    const watch = { isSet: this.setsWatches, isOver: false, use: () => {} };
    this.watches.push(watch);
    return watch;
  });

  /** Makes an entry; tells whether its number was enough to know that it is alone. */
  join({
    session = SESSION,
    others = [],
    meanwhile = () => {},
  }: {
    session?: StoreSession;
    others?: readonly QueueEntry[];
    meanwhile?: () => void;
  } = {}): {
    entry: QueueEntry;
    guessed: boolean;
  } {
    const guess = this.#joins.guess(session);
    meanwhile();
    const entry = this.entry();
    const guessed = guess !== undefined && this.#joins.isRight(guess, entry);
    const view: QueueView = { entries: [...others, entry], foreign: [] };
    if (!guessed) this.#joins.joined(entry, view, session);
    return { entry, guessed };
  }

  left(entry: QueueEntry): void {
    this.#joins.left(entry);
  }

  /** Joins and leaves so often; returns how many of them needed no list. */
  cycle(count: number, session = SESSION): number {
    let guessedCount = 0;
    for (let done = 0; done < count; done++) {
      const { entry, guessed } = this.join({ session });
      if (guessed) guessedCount++;
      this.left(entry);
    }
    return guessedCount;
  }

  entry(): QueueEntry {
    const sequence = this.next++;
    return { name: `_c_${sequence}-${Math.random()}`, role: 'exclusive', sequence, czxid: undefined };
  }

  folderWent(): void {
    for (const watch of this.watches) Object.assign(watch, { isSet: false, isOver: true });
    this.next = 0;
  }
}

describe('an entry is known to be alone by its number', () => {
  test('after a few joins in a row with nobody in between, and from then on', () => {
    const scene = new Scene();
    expect(scene.cycle(5)).toBe(0);
    expect(scene.cycle(20)).toBe(20);
    expect(scene.watches).toHaveLength(1);
  });

  test('not before the folder has been watched since an entry was in it', () => {
    const scene = new Scene();
    scene.setsWatches = false;
    expect(scene.cycle(20)).toBe(0);
    scene.watches[0]!.isSet = true;
    expect(scene.cycle(1)).toBe(0);
    expect(scene.cycle(1)).toBe(1);
  });

  test('not if another has come in between', () => {
    const scene = new Scene();
    scene.cycle(10);
    scene.next++;
    expect(scene.cycle(1)).toBe(0);
  });

  test('not while the one before has not left', () => {
    const scene = new Scene();
    scene.cycle(10);
    scene.join();
    expect(scene.join().guessed).toBe(false);
  });

  test('not for two at the same time', () => {
    const scene = new Scene();
    scene.cycle(10);
    expect([scene.join().guessed, scene.join().guessed]).toEqual([true, false]);
  });

  test('not if the one before was not alone, even if it had left', () => {
    const scene = new Scene();
    scene.cycle(10);
    const holder = scene.entry();
    const { entry } = scene.join({ others: [holder] });
    scene.left(entry);
    expect(scene.join().guessed).toBe(false);
  });

  test('not in a folder of the same name, whose counter happens to have come to the same number', () => {
    const scene = new Scene();
    scene.cycle(10);
    const { next } = scene;
    scene.folderWent();
    scene.next = next;
    expect(scene.cycle(1)).toBe(0);
  });

  test('not if the folder went while the entry was being made', () => {
    const scene = new Scene();
    scene.cycle(10);
    const { next } = scene;
    const meanwhile = () => {
      scene.folderWent();
      scene.next = next;
    };
    expect(scene.join({ meanwhile }).guessed).toBe(false);
  });

  test('not because another entry with the number of the one before has left', () => {
    const scene = new Scene();
    scene.cycle(10);
    const { entry } = scene.join();
    scene.left({ ...entry, name: '_c_of-an-older-folder' });
    expect(scene.join().guessed).toBe(false);
  });

  test('not in another session', () => {
    const scene = new Scene();
    scene.cycle(10);
    expect(scene.cycle(1, {} as StoreSession)).toBe(0);
  });

  test('not at the end of the numbers, where many get the same', () => {
    const scene = new Scene();
    scene.next = SEQUENCE_LAST - 10;
    scene.cycle(8);
    expect(scene.join().guessed).toBe(true);
    scene.next = SEQUENCE_LAST - 20;
    scene.cycle(19);
    expect(scene.next).toBe(SEQUENCE_LAST - 1);
    scene.cycle(1);
    expect(scene.join().guessed).toBe(false);
  });
});

test('wrong guesses get rarer, whatever others do', () => {
  const scene = new Scene();
  let wrongCount = 0;
  let guessing = 0;
  for (let round = 0; round < 20_000; round++) {
    // Another comes as soon as somebody relies on it that nobody does.
    const guessed = scene.cycle(1) === 1;
    if (guessed && ++guessing % 2 === 0) {
      scene.next++;
      wrongCount++;
    }
  }
  expect(wrongCount).toBeGreaterThan(5);
  expect(wrongCount).toBeLessThan(30);
});
