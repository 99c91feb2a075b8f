import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../base/duration.ts';
import type { AuthOption } from '../client/connect-options.ts';
import { type EnvironmentOptions, parseAuth } from '../locks/environment.ts';
import { connect, type Holdfast, type HoldfastOptions } from '../locks/holdfast.ts';
import { CommandError } from './command-error.ts';
import { EXIT } from './exit-codes.ts';

/** The values of the options that `withConnection` adds. */
export interface ConnectionFlags {
  readonly servers?: string;
  readonly root?: string;
  readonly auth?: readonly AuthOption[];
  readonly sessionTimeout?: number;
}

/** Adds the options by which every command finds its servers. */
export function withConnection(command: Command): Command {
  return command
    .addOption(
      new Option(
        '-s, --servers <list>',
        'host:port,host:port/chroot, unix:/path, or "local" (default: $HOLDFAST_SERVERS, then local)',
      ),
    )
    .addOption(new Option('--root <path>', 'the folder of all locks (default: $HOLDFAST_ROOT, then /locks)'))
    .addOption(
      new Option(
        '--auth <scheme:credentials>',
        'such as digest:user:password; others see it in the process list, $HOLDFAST_AUTH they do not',
      ).argParser((text, before: AuthOption[] = []) => [...before, parseAuthOption(text)]),
    )
    .addOption(
      new Option(
        '--session-timeout <duration>',
        'how long the servers keep what is held after the last word from here (default: 15s)',
      ).argParser(parseDurationOption),
    );
}

/** For the many options that are durations. */
export function parseDurationOption(text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) throw new InvalidArgumentError('such as 30s, 500ms or 1h is needed');
  return durationMs;
}

/**
 * Connects as the options and the environment say.
 *
 * @throws what `connect` does; `runCommandLine` makes one line and exit code 204, 205 or 2 of it.
 */
export function connectWith(
  flags: ConnectionFlags,
  more: Pick<HoldfastOptions, 'timeoutMs' | 'signal' | 'labels'> = {},
): Promise<Holdfast> {
  return connect({ ...optionsFrom(flags), app: 'holdfast', ...more });
}

function optionsFrom({ servers, root, auth, sessionTimeout }: ConnectionFlags): EnvironmentOptions {
  return {
    ...(servers !== undefined && { servers }),
    ...(root !== undefined && { root }),
    ...(auth !== undefined && { auth }),
    ...(sessionTimeout !== undefined && { sessionTimeoutMs: sessionTimeout }),
  };
}

/** Not through `InvalidArgumentError`, which would repeat what was given: it may be a password. */
function parseAuthOption(text: string): AuthOption {
  try {
    return parseAuth(text, '--auth');
  } catch (error) {
    throw new CommandError((error as Error).message, EXIT.badUsage);
  }
}
