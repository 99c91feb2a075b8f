import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Collects what nothing refers to, and what was kept only by the first of it. */
export async function collectGarbage(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    // What a promise reaction or a finalizer of this turn still refers to is let go of with the turn.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
}
