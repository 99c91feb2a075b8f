import { readFileSync } from 'node:fs';
import { parseDuration } from '../base/duration.ts';
import type { AuthOption, ConnectOptions } from '../client/connect-options.ts';
import { readTlsOptions } from '../client/tcp-tls-options.ts';

/** What the environment may say; each stands in for the option of that name. */
export interface EnvironmentOptions extends ConnectOptions {
  readonly servers?: string;
  readonly root?: string;
}

const TIMEOUT_MS_MAX = 24 * 86_400_000;
const TLS_VARIABLES = { ca: 'HOLDFAST_TLS_CA', cert: 'HOLDFAST_TLS_CERT', key: 'HOLDFAST_TLS_KEY' } as const;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The options that are given by environment variables: `HOLDFAST_SERVERS`, `HOLDFAST_ROOT`, `HOLDFAST_AUTH`,
 * `HOLDFAST_SESSION_TIMEOUT`, `HOLDFAST_TLS_CA`, `HOLDFAST_TLS_CERT`, `HOLDFAST_TLS_KEY`. An empty one is none.
 *
 * @throws TypeError, RangeError naming the variable.
 */
export function optionsFromEnvironment(env: Environment): EnvironmentOptions {
  const servers = env['HOLDFAST_SERVERS'];
  const root = env['HOLDFAST_ROOT'];
  const auth = env['HOLDFAST_AUTH'];
  const timeout = env['HOLDFAST_SESSION_TIMEOUT'];
  const tls = tlsFrom(env);
  return {
    ...(servers && { servers }),
    ...(root && { root }),
    ...(auth && { auth: [parseAuth(auth, 'HOLDFAST_AUTH')] }),
    ...(timeout && { sessionTimeoutMs: readTimeout(timeout) }),
    ...(tls && { tls }),
  };
}

/** Parses `digest:user:password`. The text is a secret: no message repeats it. */
export function parseAuth(text: string, where: string): AuthOption {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) {
    throw new TypeError(`${where}: scheme:credentials is needed, such as digest:user:password`);
  }
  return { scheme: text.slice(0, colon), auth: text.slice(colon + 1) };
}

function readTimeout(text: string): number {
  const timeoutMs = parseDuration(text);
  const given = JSON.stringify(text);
  if (timeoutMs === undefined) {
    throw new TypeError(`HOLDFAST_SESSION_TIMEOUT: ${given} given; such as 15s is needed`);
  }
  if (timeoutMs < 1 || timeoutMs > TIMEOUT_MS_MAX) {
    throw new RangeError(`HOLDFAST_SESSION_TIMEOUT: ${given} given; 1ms to 24d is allowed`);
  }
  return timeoutMs;
}

function tlsFrom(env: Environment): ConnectOptions['tls'] | undefined {
  const given = Object.entries(TLS_VARIABLES).filter(([, name]) => env[name]);
  if (given.length === 0) return undefined;
  const tls = Object.fromEntries(given.map(([option, name]) => [option, readPem(name, env[name]!)]));
  try {
    readTlsOptions(tls);
  } catch (error) {
    const { message, cause } = error as Error;
    throw new TypeError(inVariables(message, env), { cause });
  }
  return tls;
}

/** What `readTlsOptions` says of an option, said of the variable: `tls.ca: …` is `HOLDFAST_TLS_CA "/file": …`. */
function inVariables(message: string, env: Environment): string {
  const [, option, said] = /^tls(?:\.(ca|cert|key))?: (.*)$/s.exec(message) ?? [];
  const given = Object.values(TLS_VARIABLES).filter((name) => env[name]);
  const names = option === undefined ? given : [TLS_VARIABLES[option as keyof typeof TLS_VARIABLES]];
  return `${names.map((name) => `${name} ${JSON.stringify(env[name])}`).join(', ')}: ${(said ?? message).replace(', not a path', '')}`;
}

function readPem(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new TypeError(`${name}: ${(cause as Error).message}`, { cause });
  }
}
