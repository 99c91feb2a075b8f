import { type AdminCommand, adminCommands } from './admin-commands.ts';
import { type JsonObject, jsonParts, jsonText } from './json-text.ts';
import { PROMETHEUS_TYPE, prometheusText } from './prometheus-text.ts';
import type { Asking, Reported } from './reported.ts';
import { metricsOf } from './server-metrics.ts';

/** What a request over HTTP says, as far as it matters here. */
export interface AdminRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly target: string;
  /** The `Host` header; undefined if there was none. */
  readonly hostHeader: string | undefined;
}

export interface AdminAnswer {
  readonly status: number;
  readonly type: string;
  /** In parts if it may be very long. */
  readonly body: string | Iterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What may be asked, and under which name the endpoint was made known. */
export interface AdminRules {
  readonly host: string;
  /** The four-letter words that are answered: a command is answered if its word is. */
  readonly fourLetterWords: readonly string[] | '*';
}

const COMMANDS = '/commands';

/** The answer to one request. Nothing that is asked here changes anything. */
export function answerAdmin(
  request: AdminRequest,
  server: Reported,
  rules: AdminRules,
  asking: Asking,
): AdminAnswer {
  if (!isOwnName(request.hostHeader, rules.host)) return refusal(403, 'this is not the host you asked for');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return { ...refusal(405, 'only GET and HEAD'), headers: { allow: 'GET, HEAD' } };
  }
  const path = request.target.split('?', 1)[0]!;
  if (path === '/metrics') {
    const metrics = metricsOf(server, asking.nowMs, asking.processFacts());
    return { status: 200, type: PROMETHEUS_TYPE, body: prometheusText(metrics) };
  }
  if (path === '/healthz') return health(server);
  if (path === COMMANDS || path === `${COMMANDS}/`) return listing(rules);
  if (path.startsWith(`${COMMANDS}/`)) {
    return command(path.slice(COMMANDS.length + 1), server, rules, asking);
  }
  return refusal(404, 'there are /commands, /metrics and /healthz');
}

function health({ writeFault }: Reported): AdminAnswer {
  return writeFault === undefined
    ? json(200, { status: 'ok' })
    : json(503, { status: 'writes are refused', reason: writeFault });
}

function listing(rules: AdminRules): AdminAnswer {
  const links = adminCommands
    .filter((each) => isAllowed(each, rules))
    .map(({ name }) => `<a href="${COMMANDS}/${name}">${name}</a>\n<br/>\n`);
  return { status: 200, type: 'text/html; charset=utf-8', body: links.join('') };
}

function command(name: string, server: Reported, rules: AdminRules, asking: Asking): AdminAnswer {
  const found = adminCommands.find((each) => each.name === name || each.otherNames.includes(name));
  // As ZooKeeper does: that there is no such command is an answer, not a failure.
  if (!found) return json(200, { command: name, error: `Unknown command: ${name}` });
  if (!isAllowed(found, rules)) {
    return json(403, {
      command: found.name,
      error: `${found.word} is not executed because it is not in the whitelist.`,
    });
  }
  const report = { ...found.report(server, asking), command: found.name, error: null };
  return { ...json(200, {}), body: found.long ? jsonParts(report) : `${jsonText(report)}\n` };
}

function isAllowed({ word }: AdminCommand, { fourLetterWords }: AdminRules): boolean {
  return fourLetterWords === '*' || fourLetterWords.includes(word);
}

/**
 * Whether the request was meant for this server. A web page can have a name of its own point at 127.0.0.1, and would
 * then read the answers as its own (DNS rebinding); it cannot do so with an address, or with a name that is not its.
 */
function isOwnName(hostHeader: string | undefined, host: string): boolean {
  if (hostHeader === undefined) return true; // No browser leaves it out.
  const name = hostHeader.replace(/:\d*$/, '').toLowerCase();
  return (
    name === 'localhost' ||
    name === host.toLowerCase() ||
    /^\d{1,3}(\.\d{1,3}){3}$/.test(name) ||
    /^\[[0-9a-f:.]+\]$/.test(name)
  );
}

function json(status: number, body: JsonObject): AdminAnswer {
  return { status, type: 'application/json', body: `${jsonText(body)}\n` };
}

function refusal(status: number, reason: string): AdminAnswer {
  return json(status, { error: reason });
}
