import type { ParentHold } from '../../locks/owner.ts';
import { CommandError } from '../command-error.ts';
import { EXIT } from '../exit-codes.ts';
import { sessionText } from '../lock-json.ts';

/** The variable that tells a command, and every run that it starts, under which holds it runs. */
export const HELD_VARIABLE = 'HOLDFAST_HELD';

/** A hold of a run whose command started this run, itself or through other programs. */
export interface AncestorHold extends ParentHold {
  /** The names of its locks; undefined where they do not fit into the variable: it may be any lock. */
  readonly locks: readonly string[] | undefined;
  /** The socket at which that run lets others in under its hold; undefined where none could be opened. */
  readonly door: string | undefined;
}

/** More levels than this are not told: an environment has a limit, and every program started gets all of it. */
const LEVELS_MAX = 32;
/** How long the variable may become by the names of locks, in UTF-8. Without any name, 32 levels take 25 KiB at most. */
const TEXT_BYTES_MAX = 64 * 1024;
/** Linux accepts no longer string in an environment, the variable's name included. */
const CHARACTERS_MAX = 128 * 1024;

/**
 * The ancestors' holds, the nearest last. What the variable says may be stale, of other servers or forged, so it is only
 * a hint: `judgeOwnHolds` believes what the servers say. Text of another form means no ancestors.
 *
 * @throws CommandError where the text is longer than any that a run writes: it is not known then what it says.
 */
export function ancestorsFrom(text: string | undefined): AncestorHold[] {
  if (text === undefined) return [];
  if (text.length > CHARACTERS_MAX) {
    const message = `${HELD_VARIABLE} has ${text.length} characters, at most ${CHARACTERS_MAX} are read; unset it unless this runs inside holdfast run`;
    throw new CommandError(message, EXIT.badUsage);
  }
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
  if (locks !== undefined && !isTexts(locks)) return [];
  return [
    {
      session: BigInt.asIntN(64, BigInt(session)),
      token: BigInt(token),
      locks,
      door: typeof door === 'string' && door !== '' ? door : undefined,
    },
  ];
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** What the variable says to the command of a run. The outermost holds are the first to go without their names. */
export function ancestorsText(ancestors: readonly AncestorHold[]): string {
  const levels = ancestors.slice(-LEVELS_MAX).map(({ session, token, locks, door }) => ({
    session: sessionText(session),
    token: String(token),
    locks,
    ...(door !== undefined && { door }),
  }));
  for (const level of levels) {
    const text = JSON.stringify(levels);
    if (Buffer.byteLength(text) <= TEXT_BYTES_MAX) return text;
    level.locks = undefined;
  }
  return JSON.stringify(levels);
}
