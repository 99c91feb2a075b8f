import { NotHolderError } from '../../locks/lock-errors.ts';
import { CommandError } from '../command-error.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { EXIT } from '../exit-codes.ts';
import { withJson } from '../json.ts';
import { parseLockName } from '../lock-argument.ts';
import { auditJson } from '../lock-json.ts';
import { ownerText } from '../owner-text.ts';
import { printJson, printLines, wrappedLine } from '../print.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { withHoldfast } from '../with-holdfast.ts';

interface ReleaseOptions extends ConnectionFlags {
  readonly id: string;
  readonly reason: string;
  readonly json?: boolean;
}

/** Takes a lock from its holder. */
export const define: DefineCommand = (command, { console }) => {
  withJson(withConnection(command))
    .usage('<lock> --id <holder> --reason <text> [options]')
    .argument('<lock>', 'its name', parseLockName)
    .requiredOption('--id <holder>', 'exactly this holder, as `holdfast inspect` shows it (required)')
    .requiredOption('--reason <text>', 'why; written down in the history of the lock (required)')
    .addHelpText(
      'after',
      `
Examples:
  holdfast inspect nightly-report
  holdfast release nightly-report --id _c_0a1b…-lock-0000000042 --reason 'host is gone, ticket 77'

The next in the queue holds at once, and the old holder is told only after that, or never if it is a Java program: a
resource that does not check tokens may see both. Ask first: \`holdfast revoke\`. Who did it and why is written down in
the same transaction; \`holdfast history\` shows it. Exit code 1, and nothing done, unless exactly that one holds it.`,
    )
    .action(async (name: string, { id, reason, ...options }: ReleaseOptions) => {
      const record = await withHoldfast(console, options, 'releasing', async (holdfast) => {
        try {
          return await holdfast.forceRelease(name, { holder: id, reason });
        } catch (error) {
          if (!(error instanceof NotHolderError)) throw error;
          const { holders } = error;
          const now = holders.length === 0 ? 'nobody does' : `held by ${holders.join(', ')}`;
          throw new CommandError(visibleText(`${error.message}; ${now}`), EXIT.failed, { cause: error });
        }
      });
      if (options.json) return printJson(console, auditJson(record));
      const line = visibleText(`${name}: taken from ${ownerText(record)} (${id})`);
      printLines(console, wrappedLine(console, line));
    });
};
