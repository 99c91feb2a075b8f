import { systemClock } from '../../base/clock.ts';
import type { Wait, WaitGraph } from '../../locks/wait-graph.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { EXIT } from '../exit-codes.ts';
import { confirmedGraph } from '../graph/confirmed-graph.ts';
import { dotText } from '../graph/dot-text.ts';
import { deadlockLines, waitColumns } from '../graph/graph-lines.ts';
import { withJson } from '../json.ts';
import { contenderJson, sessionText } from '../lock-json.ts';
import { printJson, printLines, printTable } from '../print.ts';
import { paintFor } from '../terminal/paint.ts';
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
      if (graph.waits.length === 0) return printLines(console, ['Nobody waits.']);
      const wallMs = systemClock.wallMs();
      printTable(console, waitColumns(graph, wallMs), graph.waits);
      printLines(console, deadlockLines(graph, wallMs, paintFor(console.stdout, console.env)));
    });
};

function graphJson({ waits, nested, deadlocks, stuck }: WaitGraph): object {
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
  };
}
