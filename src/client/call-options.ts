import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { checkDuration } from './arguments.ts';

/** What bounds a call that asks servers, perhaps several times. */
export interface CallOptions {
  /** Gives the call up, with the signal's own reason. What was sent may still be applied. */
  readonly signal?: AbortSignal;
  /** Gives the call up after this long, connection trouble included. */
  readonly timeoutMs?: number;
}

export const callOptionNames: OptionNames<CallOptions> = { signal: true, timeoutMs: true };

const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** @throws TypeError for an option that does not exist; TypeError, RangeError for a bound that is none. */
export function checkCallOptions<Options extends CallOptions>(
  where: string,
  options: Options,
  names: OptionNames<Options>,
): void {
  checkOptionNames(where, options, names);
  checkBounds(options);
}

/** @throws TypeError for what is no signal, RangeError for what is no time. */
export function checkBounds({ signal, timeoutMs }: CallOptions): void {
  if (signal !== undefined && !isSignal(signal)) {
    throw new TypeError(`signal: a ${typeof signal} given; an AbortSignal is needed`);
  }
  if (timeoutMs !== undefined) checkDuration('timeoutMs', timeoutMs, { min: 0, max: TIMEOUT_MS_MAX });
}

/** Not by its class: other realms have their own. */
function isSignal(value: unknown): value is AbortSignal {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as AbortSignal).aborted === 'boolean' &&
    typeof (value as AbortSignal).addEventListener === 'function'
  );
}
