import type { ExitCode } from './exit-codes.ts';

/** Ends the invocation with one line on standard error and that exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: ExitCode;
  /** What `--json` tells besides. */
  readonly facts: object;

  constructor(message: string, exitCode: ExitCode, options: ErrorOptions & { readonly facts?: object } = {}) {
    super(message, options);
    this.exitCode = exitCode;
    this.facts = options.facts ?? {};
  }
}
