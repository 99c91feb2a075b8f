import { InvalidArgumentError } from 'commander';
import type { TokenState } from '../../locks/token-floor.ts';
import { FLOOR_MAX } from '../../queue/floor-node.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { DefineCommand } from '../define-command.ts';
import { withJson } from '../json.ts';
import { printJson, printLines } from '../print.ts';
import { withHoldfast } from '../with-holdfast.ts';

interface TokensOptions extends ConnectionFlags {
  readonly raiseTo?: bigint;
  readonly json?: boolean;
}

/** Shows how far fencing tokens have come, and makes them rise over a move to other servers. */
export const define: DefineCommand = (command, { console }) => {
  withJson(withConnection(command))
    .option('--raise-to <token>', 'make every token from now on larger than this one', parseToken)
    .addHelpText(
      'after',
      `
Examples:
  holdfast tokens --servers localhost:2181
  holdfast tokens --servers zk1,zk2,zk3 --raise-to 95385881624444936

Other servers give other tokens. A resource that has admitted those of the old servers refuses the new ones if they are
smaller. When you move: stop the programs, read the newest token at the old servers, raise the tokens of the new ones
above it, start the programs there. Does nothing if tokens are above it already.`,
    )
    .action(async ({ raiseTo, ...options }: TokensOptions) => {
      const what = raiseTo === undefined ? 'looking' : 'raising';
      const state = await withHoldfast(console, options, what, (holdfast) =>
        raiseTo === undefined ? holdfast.tokens() : holdfast.raiseTokens(raiseTo),
      );
      if (options.json) return printJson(console, jsonOf(state));
      printLines(console, [`newest token  ${state.newest}`, `floor         ${state.floor}`]);
    });
};

function jsonOf({ newest, floor }: TokenState): Record<string, string> {
  return { newest: String(newest), floor: String(floor) };
}

function parseToken(text: string): bigint {
  const token = /^\d{1,19}$/.test(text) ? BigInt(text) : undefined;
  if (token === undefined || token > FLOOR_MAX) {
    throw new InvalidArgumentError(`${text}: a token is needed, a whole number up to ${FLOOR_MAX}.`);
  }
  return token;
}
