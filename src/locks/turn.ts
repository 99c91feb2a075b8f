import type { EntryRole, QueueEntry } from '../queue/lock-queue.ts';

/** Who goes when: which roles there are in such a queue, and which earlier entries stand in the way. */
export interface TurnRule {
  readonly roles: readonly EntryRole[];
  blockedBy(earlier: QueueEntry): boolean;
  /** Nobody can come in ahead of an entry that is there: those ahead of it only become fewer. */
  readonly lastInLast?: true;
}

/** Whose turn it is, from one contender's view. */
export type Turn =
  | { readonly kind: 'granted' }
  | { readonly kind: 'evicted' }
  /** `baton`: the one waited for holds alone when it holds, so its release is a grant. `ahead` counts all before us. */
  | { readonly kind: 'wait'; readonly for: QueueEntry; readonly baton: boolean; readonly ahead: number };

export const exclusive: TurnRule = { roles: ['exclusive'], blockedBy: () => true, lastInLast: true };
export const leading: TurnRule = { roles: ['leader'], blockedBy: () => true, lastInLast: true };

const ofReadersAndWriters: readonly EntryRole[] = ['read', 'write', 'upgradable', 'upgraded'];
const isWriter = ({ role }: QueueEntry) => role === 'write' || role === 'upgraded';
export const writing: TurnRule = { roles: ofReadersAndWriters, blockedBy: () => true };
export const reading: TurnRule = { roles: ofReadersAndWriters, blockedBy: isWriter };
/** A reader that one other reader of its kind at most is beside: none. */
export const readingUpgradably: TurnRule = {
  roles: ofReadersAndWriters,
  blockedBy: (earlier) => isWriter(earlier) || earlier.role === 'upgradable',
};
/** Of those ahead only readers hold: one upgradable is the contender itself, the others wait for it. */
export const upgrading: TurnRule = {
  roles: ofReadersAndWriters,
  blockedBy: ({ role }) => role !== 'upgradable',
};

/** Whether it holds alone when it holds, and nothing of its own stays: only then is its release a grant. */
export function passesBaton(role: EntryRole): boolean {
  return role !== 'read' && role !== 'upgradable' && role !== 'upgraded';
}

/** Only the nearest of those in the way can be the last of them to go. */
export function decideTurn(self: QueueEntry, entries: readonly QueueEntry[], rule: TurnRule): Turn {
  // Whoever has just come is near the end.
  const place = entries.findLastIndex(({ name }) => name === self.name);
  if (place < 0) return { kind: 'evicted' };
  for (let index = place - 1; index >= 0; index--) {
    const earlier = entries[index]!;
    if (rule.blockedBy(earlier)) {
      return { kind: 'wait', for: earlier, baton: passesBaton(earlier.role), ahead: place };
    }
  }
  return { kind: 'granted' };
}

/** Whether one who came now would be granted at once. */
export function isFree(entries: readonly QueueEntry[], rule: TurnRule): boolean {
  return !entries.some((entry) => rule.blockedBy(entry));
}
