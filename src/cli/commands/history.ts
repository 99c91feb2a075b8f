import { systemClock } from '../../base/clock.ts';
import type { AuditRecord } from '../../locks/audit-log.ts';
import { type ConnectionFlags, connectWith, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { eventJson, eventLine } from '../history/history-text.ts';
import { HoldTracker } from '../history/hold-tracker.ts';
import { type FollowEvent, watchHolds } from '../history/hold-watch.ts';
import { withJson } from '../json.ts';
import { parseLockName } from '../lock-argument.ts';
import { printJson, printLines, wrappedLine } from '../print.ts';
import { untilSignalled } from '../until-signalled.ts';
import { withHoldfast } from '../with-holdfast.ts';

interface HistoryOptions extends ConnectionFlags {
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** Who had a lock, and who took it from whom. */
export const define: DefineCommand = (command, { console }) => {
  withJson(withConnection(command))
    .argument('<lock>', 'its name', parseLockName)
    .option('-f, --follow', 'go on: print each hold as it begins and ends, until Ctrl-C')
    .addHelpText(
      'after',
      `
Examples:
  holdfast history nightly-report
  holdfast history nightly-report --follow
  holdfast history nightly-report --follow --json >> nightly-report.jsonl

What is kept: who was asked to let go with a reason, and from whom the lock was taken by \`holdfast release\`; the last
hundred of each lock. Ordinary holds are not kept: servers forget a holder's node when it goes, and writing each one
down would double the cost of a lock. To have them, follow, and keep what is printed. A hold shorter than a round trip
may not be seen; while no server answers nothing is: a gap says so, and following goes on.`,
    )
    .action(async (name: string, options: HistoryOptions) => {
      const { records, lock } = await withHoldfast(console, options, 'reading', async (holdfast) => {
        await holdfast.zk.sync();
        return { records: await holdfast.audit(name), lock: await holdfast.inspect(name) };
      });
      const print = (event: FollowEvent) => {
        if (options.json) printJson(console, eventJson(name, event));
        else printLines(console, wrappedLine(console, eventLine(event)));
      };
      for (const record of records) print({ event: 'record', record });
      if (options.follow) return follow({ name, options, known: records, print });
      const at = new Date(systemClock.wallMs());
      const holds = new HoldTracker().look(lock, at, 0);
      for (const hold of holds) print(hold);
      if (!options.json && records.length + holds.length === 0)
        printLines(console, ['Nothing is known of it.']);
    });
};

interface Following {
  readonly name: string;
  readonly options: HistoryOptions;
  readonly known: readonly AuditRecord[];
  print(event: FollowEvent): void;
}

async function follow({ name, options, known, print }: Following): Promise<void> {
  await using holdfast = await connectWith(options);
  await untilSignalled(async (signal) => {
    for await (const event of watchHolds(holdfast, name, { signal, known })) print(event);
  });
}
