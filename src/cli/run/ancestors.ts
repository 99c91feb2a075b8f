import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';
import type { ParentHold } from '../../locks/owner.ts';
import type { AncestorHold } from './held-variable.ts';
import type { WantedLock } from './run-plan.ts';

/** Which of the wanted locks an ancestor may hold, as far as it says: only those are looked at. */
export function namesToLookAt(wanted: WantedLock, ancestors: readonly AncestorHold[]): string[] {
  const names = wanted.kind === 'multi' ? wanted.names : [wanted.name];
  return names.filter((name) => ancestors.some(({ locks }) => locks?.includes(name) ?? true));
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
