import type { ParentHold } from '../../locks/owner.ts';
import { sessionText } from '../lock-json.ts';

/** The variable that tells a command, and every run that it starts, under which holds it runs. */
export const HELD_VARIABLE = 'HOLDFAST_HELD';

/** A hold of a run whose command started this run, itself or through other programs. */
export interface AncestorHold extends ParentHold {
  readonly locks: readonly string[];
  /** The socket at which that run lets others in under its hold; undefined where none could be opened. */
  readonly door: string | undefined;
}

/** More levels than this are not told: an environment has a limit, and every program started gets all of it. */
const LEVELS_MAX = 32;
const CHARACTERS_MAX = 64 * 1024;

/**
 * The ancestors' holds, the nearest last. What the variable says may be stale, of other servers or forged, so it is only
 * a hint: `judgeOwnHolds` believes what the servers say. Text that is none of ours means no ancestors.
 */
export function ancestorsFrom(text: string | undefined): AncestorHold[] {
  if (text === undefined || text.length > CHARACTERS_MAX) return [];
  try {
    const said: unknown = JSON.parse(text);
    return Array.isArray(said) ? said.slice(-LEVELS_MAX).flatMap(ancestorFrom) : [];
  } catch {
    return [];
  }
}

function ancestorFrom(said: unknown): AncestorHold[] {
  if (typeof said !== 'object' || said === null) return [];
  const { session, token, locks, door } = said as Record<string, unknown>;
  if (typeof session !== 'string' || !/^0x[0-9a-f]{1,16}$/.test(session)) return [];
  if (typeof token !== 'string' || !/^\d{1,19}$/.test(token)) return [];
  if (!Array.isArray(locks) || !locks.every((lock) => typeof lock === 'string')) return [];
  return [
    {
      session: BigInt.asIntN(64, BigInt(session)),
      token: BigInt(token),
      locks,
      door: typeof door === 'string' && door !== '' ? door : undefined,
    },
  ];
}

/** What the variable says to the command of a run. */
export function ancestorsText(ancestors: readonly AncestorHold[]): string {
  return JSON.stringify(
    ancestors.slice(-LEVELS_MAX).map(({ session, token, locks, door }) => ({
      session: sessionText(session),
      token: String(token),
      locks,
      ...(door !== undefined && { door }),
    })),
  );
}
