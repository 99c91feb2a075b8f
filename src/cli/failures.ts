import { LocalServerError } from '../local/local-server-error.ts';
import {
  ContenderEvictedError,
  ForeignNodeError,
  LockTimeoutError,
  LockUnreachableError,
  WrongKindError,
} from '../locks/lock-errors.ts';
import { AuthFailedError, isServerError, UnreachableError } from '../protocol/errors.ts';
import { CommandError } from './command-error.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';

/** What an error of the library ends the command with; undefined for a bug, which is not to be hidden in one line. */
export function asCommandError(error: unknown): CommandError | undefined {
  if (error instanceof CommandError) return error;
  const exitCode = exitCodeOf(error);
  return exitCode === undefined
    ? undefined
    : new CommandError((error as Error).message, exitCode, { cause: error });
}

function exitCodeOf(error: unknown): ExitCode | undefined {
  if (error instanceof UnreachableError || error instanceof LockUnreachableError) return EXIT.unreachable;
  if (error instanceof LocalServerError) return EXIT.unreachable;
  if (error instanceof AuthFailedError || isServerError(error, 'no-auth')) return EXIT.refused;
  if (error instanceof WrongKindError || error instanceof ForeignNodeError) return EXIT.wrongKind;
  if (error instanceof LockTimeoutError) return EXIT.busy;
  if (error instanceof ContenderEvictedError) return EXIT.revoked;
  // Misuse, which the library tells before anything happens: here it came from the command line.
  if (isMisuse(error)) return EXIT.badUsage;
  return undefined;
}

/** What `arguments.ts` and its like throw says what was given; a TypeError of the engine does not. */
function isMisuse(error: unknown): boolean {
  return (
    (error instanceof TypeError || error instanceof RangeError) &&
    /^(connect string|[\w-]+)( ".*")?: /s.test(error.message)
  );
}
