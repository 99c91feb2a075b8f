import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';
import type { ParentHold } from '../../locks/owner.ts';
import { sessionText } from '../lock-json.ts';
import type { WantedLock } from './run-plan.ts';

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

/** Which of the wanted locks an ancestor says that it holds: only those are looked at. */
export function namesToLookAt(wanted: WantedLock, ancestors: readonly AncestorHold[]): string[] {
  const names = wanted.kind === 'multi' ? wanted.names : [wanted.name];
  return names.filter((name) => ancestors.some(({ locks }) => locks.includes(name)));
}

/** That an ancestor holds what is wanted. */
export interface OwnHold {
  readonly lockName: string;
  readonly ancestor: AncestorHold;
  readonly holder: ContenderInfo;
  /** `certain`: a wait for it would never end. `if-it-waits`: shared by both, which ends unless a writer comes between. */
  readonly stuck: 'certain' | 'if-it-waits' | 'no';
  /** Whether that hold gives what is wanted: then the command may run under it. */
  readonly covers: boolean;
}

/** Compares what is wanted with what the servers say the ancestors hold now: one entry for each lock that they do. */
export function judgeOwnHolds(
  wanted: WantedLock,
  locks: readonly LockInfo[],
  ancestors: readonly AncestorHold[],
): OwnHold[] {
  return locks.flatMap((lock) => {
    // Both must be as the ancestor said: the same session could be of another ensemble, or hold anew.
    const held = ancestors.flatMap((ancestor) => {
      const holder = lock.holders.find(
        ({ session, token }) => session === ancestor.session && token === ancestor.token,
      );
      return holder ? [{ ancestor, holder }] : [];
    });
    const nearest = held.at(-1);
    if (!nearest) return [];
    const permitsOf = ({ session }: ParentHold) =>
      lock.holders.filter((holder) => holder.session === session).length;
    const all = held.reduce((sum, { ancestor }) => sum + permitsOf(ancestor), 0);
    const verdict = compare(wanted, nearest.holder, { nearest: permitsOf(nearest.ancestor), all });
    return verdict ? [{ lockName: lock.name, ...nearest, ...verdict }] : [];
  });
}

/** Undefined where the two are locks of different kinds: acquiring says that better. */
function compare(
  wanted: WantedLock,
  { role }: ContenderInfo,
  permits: { readonly nearest: number; readonly all: number },
): Pick<OwnHold, 'stuck' | 'covers'> | undefined {
  switch (wanted.kind) {
    case 'mutex':
    case 'multi':
      return role === 'exclusive' ? { stuck: 'certain', covers: true } : undefined;
    case 'leader':
      return role === 'leader' ? { stuck: 'certain', covers: true } : undefined;
    case 'write':
      if (role !== 'write' && role !== 'read') return undefined;
      return { stuck: 'certain', covers: role === 'write' };
    case 'read':
      if (role !== 'write' && role !== 'read') return undefined;
      return { stuck: role === 'write' ? 'certain' : 'if-it-waits', covers: true };
    case 'semaphore':
      if (role !== 'lease') return undefined;
      return {
        stuck: permits.all + wanted.permits > wanted.of ? 'certain' : 'no',
        covers: permits.nearest >= wanted.permits,
      };
  }
}
