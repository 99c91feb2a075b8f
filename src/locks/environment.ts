import { readFileSync } from 'node:fs';
import { parseDuration } from '../base/duration.ts';
import type { AuthOption, ConnectOptions } from '../client/connect-options.ts';

/** What the environment may say; each stands in for the option of that name. */
export interface EnvironmentOptions extends ConnectOptions {
  readonly servers?: string;
  readonly root?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The options that are given by environment variables: `HOLDFAST_SERVERS`, `HOLDFAST_ROOT`, `HOLDFAST_AUTH`,
 * `HOLDFAST_SESSION_TIMEOUT`, `HOLDFAST_TLS_CA`, `HOLDFAST_TLS_CERT`, `HOLDFAST_TLS_KEY`. An empty one is none.
 *
 * @throws TypeError naming the variable.
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
  if (timeoutMs === undefined) {
    throw new TypeError(`HOLDFAST_SESSION_TIMEOUT: ${JSON.stringify(text)} given; such as 15s is needed`);
  }
  return timeoutMs;
}

function tlsFrom(env: Environment): ConnectOptions['tls'] | undefined {
  const files = { ca: 'HOLDFAST_TLS_CA', cert: 'HOLDFAST_TLS_CERT', key: 'HOLDFAST_TLS_KEY' };
  const given = Object.entries(files).filter(([, name]) => env[name]);
  if (given.length === 0) return undefined;
  return Object.fromEntries(given.map(([option, name]) => [option, readPem(name, env[name]!)]));
}

function readPem(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new TypeError(`${name}: ${(cause as Error).message}`, { cause });
  }
}
