import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { checkDuration } from '../client/arguments.ts';

/** How the tasks of one process share their place in a mutex's queue. Left out, each task has a place of its own. */
export interface MutexOptions {
  /**
   * Keeps the lock after the last task has let go, while nobody else wants it: taking it again costs no request. Given
   * back at once when somebody comes, or when nobody here has wanted it for `idleMs`, a minute if left out.
   */
  readonly cache?: boolean | { readonly idleMs?: number };
  /**
   * Passes the lock on from task to task in this process. While others wait: at most `grantsMax` times (16 if left out)
   * and for `ms` (100), then it is theirs, and the next task here queues up behind them.
   */
  readonly handOff?: boolean | { readonly grantsMax?: number; readonly ms?: number };
}

/** The same with nothing left out. */
export interface SharingPolicy {
  /** How long a place that nobody is in is kept; 0 is not at all. */
  readonly idleMs: number;
  /** How often a place is passed on while others wait. */
  readonly grantsMax: number;
  /** How long a place is passed on while others wait. */
  readonly passMs: number;
}

const mutexNames: OptionNames<MutexOptions> = { cache: true, handOff: true };

const IDLE_MS_DEFAULT = 60_000;
/**
 * Between processes a hand-over costs a commit and a push, within one nothing. With 16 passes for each hand-over that
 * cost is a seventeenth for each grant; with twice as many, others would wait twice as long for 3 % of it.
 */
const GRANTS_MAX_DEFAULT = 16;
/** For sections that are long: what a person who waits does not notice. */
const PASS_MS_DEFAULT = 100;
const DURATION_MS_MAX = 24 * 60 * 60 * 1_000;
const GRANTS_MAX_LIMIT = 1_000_000;

/**
 * What a caller wants; undefined if tasks are to share nothing.
 *
 * @throws TypeError, RangeError naming the option.
 */
export function readMutexOptions(options: MutexOptions): SharingPolicy | undefined {
  checkOptionNames('mutex', options, mutexNames);
  const cache = readSwitch('cache', options.cache);
  const handOff = readSwitch('handOff', options.handOff);
  if (!cache && !handOff) return undefined;
  const { idleMs = IDLE_MS_DEFAULT } = cache ?? {};
  const { grantsMax = GRANTS_MAX_DEFAULT, ms = PASS_MS_DEFAULT } = handOff ?? {};
  checkDuration('cache.idleMs', idleMs, { min: 1, max: DURATION_MS_MAX });
  checkDuration('handOff.ms', ms, { min: 1, max: DURATION_MS_MAX });
  if (!Number.isInteger(grantsMax) || grantsMax < 1 || grantsMax > GRANTS_MAX_LIMIT) {
    throw new RangeError(
      `handOff.grantsMax: ${String(grantsMax)} given; an integer from 1 to ${GRANTS_MAX_LIMIT} is needed`,
    );
  }
  return {
    idleMs: cache ? idleMs : 0,
    grantsMax: handOff ? grantsMax : 0,
    passMs: handOff ? ms : 0,
  };
}

/** Whether two callers want the same. */
export function isSamePolicy(a: SharingPolicy | undefined, b: SharingPolicy | undefined): boolean {
  return a?.idleMs === b?.idleMs && a?.grantsMax === b?.grantsMax && a?.passMs === b?.passMs;
}

/** For people, in an error. */
export function describePolicy(policy: SharingPolicy | undefined): string {
  if (!policy) return 'neither cache nor handOff';
  const { idleMs, grantsMax, passMs } = policy;
  const cache = idleMs > 0 ? [`cache of ${idleMs} ms`] : [];
  const handOff = grantsMax > 0 ? [`handOff of ${grantsMax} grants or ${passMs} ms`] : [];
  return [...cache, ...handOff].join(' and ');
}

function readSwitch<T extends object>(name: string, value: boolean | T | undefined): Partial<T> | undefined {
  if (value === undefined || value === false) return undefined;
  if (value === true) return {};
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new TypeError(`${name}: ${String(value)} given; true, false or an object is needed`);
}
