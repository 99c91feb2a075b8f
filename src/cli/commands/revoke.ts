import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { EXIT } from '../exit-codes.ts';
import { withJson } from '../json.ts';
import { parseLockName } from '../lock-argument.ts';
import { printJson, printLines } from '../print.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { withHoldfast } from '../with-holdfast.ts';

interface RevokeOptions extends ConnectionFlags {
  readonly id?: string;
  readonly reason?: string;
  readonly json?: boolean;
}

/** Asks holders to let go. */
export const define: DefineCommand = (command, { console, exitWith }) => {
  withJson(withConnection(command))
    .argument('<lock>', 'its name', parseLockName)
    .option('--id <holder>', 'only this holder, as `holdfast inspect` shows it')
    .option('--reason <text>', 'why; written down in the history of the lock')
    .addHelpText(
      'after',
      `
Examples:
  holdfast revoke nightly-report --reason 'deploying'

A request, not an order: a holder that uses Holdfast, or Curator with a revocation listener, is told, and lets go when
it is done. \`holdfast run\` stops its command. See \`holdfast release\` for one that does not listen.
Exit code: 0 if anyone was asked, 1 if nobody holds it.`,
    )
    .action(async (name: string, { id, reason, ...options }: RevokeOptions) => {
      const asking = { ...(id !== undefined && { holder: id }), ...(reason !== undefined && { reason }) };
      const asked = await withHoldfast(console, options, 'asking', (holdfast) =>
        holdfast.revoke(name, asking),
      );
      if (options.json) printJson(console, { lock: name, asked });
      else {
        const whom =
          asked === 0 ? 'nobody holds it' : `asked ${asked} ${asked === 1 ? 'holder' : 'holders'} to let go`;
        printLines(console, [`${visibleText(name)}: ${whom}`]);
      }
      exitWith(asked > 0 ? EXIT.done : EXIT.failed);
    });
};
