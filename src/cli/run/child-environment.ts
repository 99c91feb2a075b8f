import { HELD_VARIABLE } from './held-variable.ts';

/** The variable that has the credentials for the servers. */
export const AUTH_VARIABLE = 'HOLDFAST_AUTH';

type Environment = Readonly<Record<string, string | undefined>>;

/** What a run tells its command. */
export interface CommandFacts {
  readonly lockText: string;
  readonly token: string;
  readonly session: string;
  readonly acquiredAt: string;
  readonly held: string;
}

/**
 * The environment of the command of a run: that of the run with what there is to know of the lock, and without the
 * credentials. A program shows its environment in crash reports and logs, and hands it to all that it starts; most
 * commands have no business with the servers. Runs inside the command ask for the credentials elsewhere. `passedAuth`
 * are those that the user wants it to have all the same.
 */
export function childEnvironment(
  env: Environment,
  { lockText, token, session, acquiredAt, held }: CommandFacts,
  passedAuth: string | undefined,
): Environment {
  const { [AUTH_VARIABLE]: _, ...others } = env;
  return {
    ...others,
    ...(passedAuth !== undefined && { [AUTH_VARIABLE]: passedAuth }),
    HOLDFAST_LOCK: lockText,
    HOLDFAST_TOKEN: token,
    HOLDFAST_SESSION: session,
    [HELD_VARIABLE]: held,
    HOLDFAST_ACQUIRED_AT: acquiredAt,
  };
}
