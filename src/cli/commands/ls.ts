import { systemClock } from '../../base/clock.ts';
import type { LockInfo } from '../../locks/inspection.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { withJson } from '../json.ts';
import { lockJson } from '../lock-json.ts';
import { lockColumns } from '../lock-tables.ts';
import { type NamePattern, namePattern } from '../name-pattern.ts';
import { printJson, printLines, printTable } from '../print.ts';
import { withHoldfast } from '../with-holdfast.ts';

interface LsOptions extends ConnectionFlags {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** Every lock that is held or waited for. */
export const define: DefineCommand = (command, { console }) => {
  withJson(withConnection(command))
    .argument('[pattern]', 'only locks whose name matches, with * and ?')
    .option('-a, --all', 'free locks too, whose folder is still there')
    .addHelpText(
      'after',
      `
Examples:
  holdfast ls
  holdfast ls 'member-*' --json
  holdfast ls --servers zk1:2181,zk2:2181 --all

JOINED is how long ago the holder took its place in the queue, by the server's clock.`,
    )
    .action(async (pattern: string | undefined, options: LsOptions) => {
      const matches: NamePattern = namePattern(pattern);
      const locks = await withHoldfast(console, options, 'reading the locks', async (holdfast) => {
        await holdfast.zk.sync();
        return (await holdfast.list()).filter((lock) => matches(lock.name) && (options.all || isInUse(lock)));
      });
      if (options.json) return printJson(console, { locks: locks.map(lockJson) });
      if (locks.length === 0) return printLines(console, ['No lock is held or waited for.']);
      printTable(console, lockColumns(systemClock.wallMs()), locks);
    });
};

/** Strangers in a lock's folder are worth a line: nobody can take that lock. */
export function isInUse({ kind }: LockInfo): boolean {
  return kind !== 'free';
}
