import type { WaitGraph } from '../../locks/wait-graph.ts';
import { sessionText } from '../lock-json.ts';
import { ownerText } from '../owner-text.ts';
import { visibleText } from '../terminal/visible-text.ts';

/** The graph for Graphviz: sessions, and an edge from each that waits to those in its way. */
export function dotText(graph: WaitGraph): string {
  const circle = new Map(graph.deadlocks.flatMap((group, index) => group.map((session) => [session, index])));
  const names = new Map<bigint, string>();
  for (const { waiter, blockers } of graph.waits) {
    for (const contender of [waiter, ...blockers]) names.set(contender.session, ownerText(contender));
  }
  for (const { parent, child } of graph.nested) {
    for (const contender of [parent, child]) names.set(contender.session, ownerText(contender));
  }
  const nodes = [...names].map(([session, name]) => {
    const label = `${name}\n${sessionText(session)}`.split('\n').map(escaped).join('\\n');
    return `  "${sessionText(session)}" [label="${label}"${circle.has(session) ? ', color=red' : ''}];`;
  });
  const edges = graph.waits.flatMap(({ lockName, waiter, blockers, enough }) =>
    blockers.map(({ session }) => {
      const inCircle = circle.has(session) && circle.get(session) === circle.get(waiter.session);
      const style = `${inCircle ? ', color=red' : ''}${enough === 'any' ? ', style=dashed' : ''}`;
      return `  "${sessionText(waiter.session)}" -> "${sessionText(session)}" [label="${escaped(lockName)}"${style}];`;
    }),
  );
  const runs = graph.nested.map(
    ({ parent, child }) =>
      `  "${sessionText(parent.session)}" -> "${sessionText(child.session)}" [label="runs", style=dotted];`,
  );
  return [
    'digraph waits {',
    '  rankdir=LR;',
    '  node [shape=box];',
    ...nodes,
    ...new Set(edges),
    ...runs,
    '}',
    '',
  ].join('\n');
}

/** Inside quotes: nothing that somebody named can end the text or add an attribute. */
function escaped(text: string): string {
  return visibleText(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"');
}
