import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../base/duration.ts';
import type { AuthOption } from '../client/connect-options.ts';
import { type EnvironmentOptions, parseAuth } from '../locks/environment.ts';
import { connect, type Holdfast, type HoldfastOptions } from '../locks/holdfast.ts';
import { CommandError } from './command-error.ts';
import { EXIT } from './exit-codes.ts';
import { AUTH_VARIABLE } from './run/child-environment.ts';
import { ancestorsFrom, HELD_VARIABLE } from './run/held-variable.ts';
import { credentialsOf } from './run/tcp-credentials.ts';

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
      ).argParser(parseTimeoutOption),
    );
}

/** Of what runs a command under a lock. */
export function graceOption(): Option {
  return new Option('--grace <duration>', 'time between SIGTERM and SIGKILL')
    .argParser(parseDurationOption)
    .default(5_000, '5s');
}

/** For the many options that are durations. */
export function parseDurationOption(text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) throw new InvalidArgumentError('such as 30s, 500ms or 1h is needed');
  return durationMs;
}

/** The longest wait that every part of the client takes: its timers count milliseconds in 31 bits. */
const TIMEOUT_MS_MAX = 24 * 86_400_000;

/** For the options that bound what the client does. */
export function parseTimeoutOption(text: string): number {
  const timeoutMs = parseDurationOption(text);
  if (timeoutMs > TIMEOUT_MS_MAX) throw new InvalidArgumentError('at most 24d is allowed');
  return timeoutMs;
}

/**
 * Connects as the options and the environment say; inside the command of a run, with that run's credentials if there are
 * none of either.
 *
 * @throws what `connect` does; `runCommandLine` makes one line and exit code 204, 205 or 2 of it.
 */
export async function connectWith(
  flags: ConnectionFlags,
  more: Pick<HoldfastOptions, 'timeoutMs' | 'signal' | 'labels'> = {},
): Promise<Holdfast> {
  const inherited = flags.auth ? undefined : await inheritedAuth(process.env, more.signal);
  const auth = inherited === undefined ? undefined : [parseAuth(inherited, 'credentials of the run above')];
  return connect({ ...(auth && { auth }), ...optionsFrom(flags), app: 'holdfast', ...more });
}

/** The credentials of the run inside whose command this is; undefined if there is none, or the environment has its own. */
export async function inheritedAuth(
  env: Readonly<Record<string, string | undefined>>,
  signal?: AbortSignal,
): Promise<string | undefined> {
  return env[AUTH_VARIABLE] ? undefined : credentialsOf(ancestorsFrom(env[HELD_VARIABLE]), signal);
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
