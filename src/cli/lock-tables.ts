import type { ContenderInfo, LockInfo } from '../locks/inspection.ts';
import { sessionText } from './lock-json.ts';
import { ownerText, whyText } from './owner-text.ts';
import { ageText } from './terminal/age-text.ts';
import { placeText } from './terminal/fitted-line.ts';
import type { Column } from './terminal/table.ts';

/** Locks, one a line: what `ls` and `top` show. */
export function lockColumns(wallMs: number): Column<LockInfo>[] {
  return [
    { title: 'LOCK', shrinks: true, text: ({ name }) => name },
    {
      title: 'KIND',
      text: ({ kind }) => kind,
      tone: ({ kind }) => (kind === 'free' ? 'faint' : isTrouble(kind) ? 'warning' : 'plain'),
    },
    { title: 'HOLDER', shrinks: true, text: holdersText },
    { title: 'JOINED', align: 'right', text: ({ holders }) => joinedText(holders[0], wallMs) },
    {
      title: 'WAITING',
      align: 'right',
      text: ({ queue }) => String(queue.length),
      tone: ({ queue }) => (queue.length > 0 ? 'warning' : 'faint'),
    },
    {
      title: 'WHY',
      shrinks: true,
      text: ({ holders: [first], problem }) => problem?.message ?? (first ? whyText(first.owner) : ''),
    },
  ];
}

function isTrouble(kind: LockInfo['kind']): boolean {
  return kind === 'unknown' || kind === 'unreadable';
}

/** A contender and where it stands: 0 for those who hold. */
export interface Placed {
  readonly place: number;
  readonly contender: ContenderInfo;
}

export function placesOf({ holders, queue }: LockInfo): Placed[] {
  return [
    ...holders.map((contender) => ({ place: 0, contender })),
    ...queue.map((contender, index) => ({ place: index + 1, contender })),
  ];
}

/** The queue of one lock: what `inspect` shows. */
export function contenderColumns(wallMs: number): Column<Placed>[] {
  return [
    {
      title: 'PLACE',
      text: ({ place }) => (place === 0 ? 'holds' : placeText(place)),
      tone: ({ place }) => (place === 0 ? 'good' : 'plain'),
    },
    { title: 'WHO', shrinks: true, text: ({ contender }) => ownerText(contender) },
    { title: 'ROLE', text: ({ contender }) => contender.role },
    { title: 'JOINED', align: 'right', text: ({ contender }) => joinedText(contender, wallMs) },
    { title: 'TOKEN', align: 'right', text: ({ contender }) => String(contender.token) },
    {
      title: 'SESSION',
      text: ({ contender: { session, unreadable } }) =>
        session !== 0n ? sessionText(session) : unreadable ? 'unknown' : 'none',
      tone: ({ contender: { session, unreadable } }) => (session === 0n && !unreadable ? 'bad' : 'plain'),
    },
    { title: 'ID', text: ({ contender }) => contender.id },
    { title: 'WHY', shrinks: true, text: ({ contender }) => whyText(contender.owner) },
  ];
}

function holdersText({ holders }: LockInfo): string {
  const [first, ...others] = holders;
  if (!first) return '-';
  return others.length === 0 ? ownerText(first) : `${ownerText(first)} and ${others.length} more`;
}

function joinedText(contender: ContenderInfo | undefined, wallMs: number): string {
  if (!contender || contender.since.getTime() === 0) return '-';
  return ageText(wallMs - contender.since.getTime());
}
