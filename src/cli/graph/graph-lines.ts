import type { ContenderInfo } from '../../locks/inspection.ts';
import type { Wait, WaitGraph } from '../../locks/wait-graph.ts';
import { sessionText } from '../lock-json.ts';
import { ownerText } from '../owner-text.ts';
import { ageText } from '../terminal/age-text.ts';
import type { Paint } from '../terminal/paint.ts';
import type { Column } from '../terminal/table.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { waitsWithin } from './confirmed-graph.ts';

export function waitColumns(graph: WaitGraph, wallMs: number): Column<Wait>[] {
  const circle = new Set(graph.deadlocks.flat());
  const stuck = new Set(graph.stuck);
  return [
    { title: 'WAITS', shrinks: true, text: ({ waiter }) => ownerText(waiter) },
    { title: 'FOR', align: 'right', text: ({ waiter }) => ageText(wallMs - waiter.since.getTime()) },
    { title: 'LOCK', shrinks: true, text: ({ lockName }) => lockName },
    { title: 'BEHIND', shrinks: true, text: behindText },
    {
      title: 'STATE',
      text: ({ waiter }) =>
        circle.has(waiter.session) ? 'deadlock' : stuck.has(waiter.session) ? 'behind a deadlock' : 'waits',
      tone: ({ waiter }) =>
        circle.has(waiter.session) ? 'bad' : stuck.has(waiter.session) ? 'warning' : 'plain',
    },
  ];
}

/** What is told of deadlocks, below the table. */
export function deadlockLines(graph: WaitGraph, wallMs: number, paint: Paint): string[] {
  return graph.deadlocks.flatMap((group) => {
    const waits = waitsWithin(graph, group);
    const newestMs = Math.max(...waits.map(({ waiter }) => waiter.since.getTime()));
    const title = `${group.length} sessions wait for each other, for ${ageText(wallMs - newestMs)}:`;
    return [
      '',
      paint('bad', title),
      ...waits.map(({ waiter, lockName, blockers }) => {
        const blocker = blockers.find(
          ({ session }) => session !== waiter.session && group.includes(session),
        ) as ContenderInfo;
        return visibleText(
          `  ${ownerText(waiter)} (${sessionText(waiter.session)}) waits for ${lockName}, behind ${ownerText(blocker)}`,
        );
      }),
      ...graph.nested
        .filter(({ parent, child }) => group.includes(parent.session) && group.includes(child.session))
        .map(({ parent, child }) =>
          visibleText(
            `  ${ownerText(parent)} (${sessionText(parent.session)}) holds until its command ends, which runs ${ownerText(child)} (${sessionText(child.session)})`,
          ),
        ),
      'Each session is taken for one task at a time. `holdfast revoke` or `holdfast release` one of the locks.',
    ];
  });
}

function behindText({ waiter, blockers, enough }: Wait): string {
  const [first, ...others] = blockers;
  if (!first) return '-';
  const name = first.session === waiter.session ? 'itself' : ownerText(first);
  if (others.length === 0) return name;
  return enough === 'any' ? `any of ${name} and ${others.length} more` : `${name} and ${others.length} more`;
}
