import { ifAborted } from '../base/abort.ts';
import { Fifo } from '../base/fifo.ts';

/** One task that waits, and what it said. */
export interface WaitingTask<Wish, Granted> {
  readonly wish: Wish;
  /** Its turn has come. */
  grant(granted: Granted): void;
  fail(error: unknown): void;
}

/** The tasks of this process that wait for one thing, in the order in which they came. */
export class TaskQueue<Wish, Granted> {
  readonly #tasks = new Fifo<WaitingTask<Wish, Granted>>();

  get length(): number {
    return this.#tasks.length;
  }

  first(): WaitingTask<Wish, Granted> | undefined {
    return this.#tasks.first();
  }

  shift(): WaitingTask<Wish, Granted> | undefined {
    return this.#tasks.shift();
  }

  /** Takes everyone out, in order. */
  drain(): WaitingTask<Wish, Granted>[] {
    return this.#tasks.drain();
  }

  /** Waits for the turn; rejects with the signal's own reason, and then calls `onGone`: the task is out of the queue. */
  wait(wish: Wish, signal: AbortSignal | undefined, onGone: () => void): Promise<Granted> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason); // Its listener would never be called.
      const settle =
        <T>(how: (value: T) => void) =>
        (value: T) => {
          stopListening();
          how(value);
        };
      const task = { wish, grant: settle(resolve), fail: settle(reject) };
      this.#tasks.push(task);
      const stopListening = ifAborted(signal, () => {
        this.#tasks.remove(task);
        reject(signal!.reason);
        onGone();
      });
    });
  }
}
