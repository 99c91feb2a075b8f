import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import type { LeaseOptions } from '../session/contact.ts';
import { checkDuration } from './arguments.ts';

const names: OptionNames<LeaseOptions> = {
  clockRateTolerance: true,
  touchLagMs: true,
  grantedTimeoutMsMin: true,
};
const defaults = { clockRateTolerance: 0.01, touchLagMs: 1_000 };

/** With half of the timeout given up, and a quarter and a fifth for touches and heartbeats, a lease still has an end. */
const CLOCK_RATE_TOLERANCE_MAX = 0.5;
const TOUCH_LAG_MS_MAX = 60 * 60 * 1_000;
const GRANTED_MS_MAX = 2 ** 31 - 1;

/**
 * How the end of a lease is reckoned, with nothing left out. A number below its bound would promise a lease beyond the
 * end of its session: two holders.
 *
 * @throws TypeError, RangeError naming the option.
 */
export function readLeaseOptions(given: Partial<LeaseOptions> = {}): LeaseOptions {
  checkOptionNames('lease', given, names);
  // Not by spreading: an option that is given as undefined is not given.
  const { clockRateTolerance = defaults.clockRateTolerance, touchLagMs = defaults.touchLagMs } = given;
  const { grantedTimeoutMsMin } = given;
  if (grantedTimeoutMsMin !== undefined) {
    checkDuration('lease.grantedTimeoutMsMin', grantedTimeoutMsMin, { min: 1, max: GRANTED_MS_MAX });
  }
  return {
    grantedTimeoutMsMin,
    clockRateTolerance: checkFraction('lease.clockRateTolerance', clockRateTolerance),
    touchLagMs: checkDuration('lease.touchLagMs', touchLagMs, { min: 0, max: TOUCH_LAG_MS_MAX }),
  };
}

function checkFraction(name: string, value: number): number {
  if (typeof value === 'number' && value >= 0 && value <= CLOCK_RATE_TOLERANCE_MAX) return value;
  throw new RangeError(
    `${name}: ${String(value)} given; a number from 0 to ${CLOCK_RATE_TOLERANCE_MAX} is needed`,
  );
}
