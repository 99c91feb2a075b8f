import { conditionOf } from '../protocol/error-codes.ts';
import { Refusal } from './access.ts';

/** Why something was refused, as a word; undefined if it was not. */
export function refusalOf(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return conditionOf(error.serverCode);
    throw error;
  }
}
