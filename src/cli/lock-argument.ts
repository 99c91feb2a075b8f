import { InvalidArgumentError } from 'commander';
import { checkName } from '../locks/lock-name.ts';

/** For arguments that are a lock's name: refused before anything is connected. */
export function parseLockName(text: string): string {
  try {
    checkName(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return text;
}
