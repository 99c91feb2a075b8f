import { systemClock } from '../../base/clock.ts';
import type { Wait } from '../../locks/wait-graph.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { EXIT } from '../exit-codes.ts';
import { type ConfirmedGraph, confirmedGraph } from '../graph/confirmed-graph.ts';
import { dotText } from '../graph/dot-text.ts';
import { deadlockLines, waitColumns } from '../graph/graph-lines.ts';
import { withJson } from '../json.ts';
import { contenderJson, sessionText } from '../lock-json.ts';
import { printJson, printLines, printTable, wrappedLine } from '../print.ts';
import { paintFor } from '../terminal/paint.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { withHoldfast } from '../with-holdfast.ts';

interface GraphOptions extends ConnectionFlags {
  readonly dot?: boolean;
  readonly json?: boolean;
}

/** Who waits for whom, and whether for ever. */
export const define: DefineCommand = (command, { console, exitWith }) => {
  withJson(withConnection(command))
    .option('--dot', 'for Graphviz')
    .addHelpText(
      'after',
      `
Examples:
  holdfast graph
  holdfast graph --dot | dot -Tsvg > waits.svg
  holdfast graph --json | jq '.deadlocks'

By session, as the servers know it, so that Java programs on Curator are in it. A circle of waits is looked at twice
before it is called a deadlock. A run that was started by the command of another run is joined with it. A program with several tasks in one session may still move: nobody outside can tell.
Exit code: 0, or 1 if there is a deadlock.`,
    )
    .action(async (options: GraphOptions) => {
      const graph = await withHoldfast(console, options, 'reading all queues', (holdfast) =>
        confirmedGraph(holdfast),
      );
      exitWith(graph.deadlocks.length > 0 ? EXIT.failed : EXIT.done);
      if (options.json) return printJson(console, graphJson(graph));
      if (options.dot) return void console.stdout.write(dotText(graph));
      const paint = paintFor(console.stdout, console.env);
      const hidden = graph.unreadable.map(({ name, problem }) =>
        paint('warning', visibleText(`not readable, and left out: ${name} (${problem?.message})`)),
      );
      if (graph.waits.length === 0) return printLines(console, ['Nobody waits.', ...hidden]);
      const wallMs = systemClock.wallMs();
      printTable(console, waitColumns(graph, wallMs), graph.waits);
      const told = [...deadlockLines(graph, wallMs, paint), ...hidden];
      printLines(
        console,
        told.flatMap((line) => wrappedLine(console, line)),
      );
    });
};

function graphJson({ waits, nested, deadlocks, stuck, unreadable }: ConfirmedGraph): object {
  return {
    waits: waits.map(({ lockName, waiter, blockers, enough }: Wait) => ({
      lock: lockName,
      waiter: contenderJson(waiter),
      blockers: blockers.map(contenderJson),
      enough,
    })),
    nested: nested.map(({ parent, child }) => ({
      parent: sessionText(parent.session),
      child: sessionText(child.session),
    })),
    deadlocks: deadlocks.map((group) => group.map(sessionText)),
    stuck: stuck.map(sessionText),
    ...(unreadable.length > 0 && {
      unreadable: unreadable.map(({ name, problem }) => ({ name, code: problem?.code })),
    }),
  };
}
