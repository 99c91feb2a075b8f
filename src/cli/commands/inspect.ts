import { systemClock } from '../../base/clock.ts';
import type { LockInfo } from '../../locks/inspection.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Console } from '../console.ts';
import type { DefineCommand } from '../define-command.ts';
import { withJson } from '../json.ts';
import { parseLockName } from '../lock-argument.ts';
import { lockJson } from '../lock-json.ts';
import { contenderColumns, placesOf } from '../lock-tables.ts';
import { printJson, printLines, printTable } from '../print.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { withHoldfast } from '../with-holdfast.ts';

interface InspectOptions extends ConnectionFlags {
  readonly json?: boolean;
}

/** From here on there is room for everything, ids included. */
const WIDE_COLUMNS = 160;

/** Who holds one lock and who waits for it. */
export const define: DefineCommand = (command, { console }) => {
  withJson(withConnection(command))
    .argument('<lock>', 'its name', parseLockName)
    .addHelpText(
      'after',
      `
Examples:
  holdfast inspect member-123
  holdfast inspect member-123 --json | jq -r '.holders[].owner.host'

The id of a holder is what \`holdfast release --id\` and \`holdfast revoke --id\` take. JOINED is how long ago it took its
place in the queue, by the server's clock.`,
    )
    .action(async (name: string, options: InspectOptions) => {
      const lock = await withHoldfast(console, options, 'reading the lock', async (holdfast) => {
        await holdfast.zk.sync();
        return holdfast.inspect(name);
      });
      if (options.json) return printJson(console, lockJson(lock));
      printLock(console, lock);
    });
};

function printLock(console: Console, lock: LockInfo): void {
  printLines(console, [summaryOf(lock)]);
  const places = placesOf(lock);
  if (places.length > 0) {
    // Ids are long, and of no use if cut: where they do not fit, those of the holders follow below.
    const narrow = console.stdout.isTTY && console.stdout.columns < WIDE_COLUMNS;
    const columns = contenderColumns(systemClock.wallMs());
    const fewer = columns.filter(({ title }) => title !== 'ID' && title !== 'SESSION');
    printTable(console, narrow ? fewer : columns, places);
    if (narrow)
      printLines(
        console,
        lock.holders.map(({ id }) => visibleText(`id of the holder: ${id}`)),
      );
  }
  if (lock.foreign.length > 0) {
    printLines(console, [visibleText(`not contenders, and in the way: ${lock.foreign.join(', ')}`)]);
  }
}

function summaryOf({ name, kind, holders, queue }: LockInfo): string {
  const held = holders.length === 0 ? 'held by nobody' : `held by ${holders.length}`;
  const waiting = queue.length === 0 ? 'nobody waits' : `${queue.length} waiting`;
  return visibleText(kind === 'free' ? `${name}: free` : `${name}: ${kind}, ${held}, ${waiting}`);
}
