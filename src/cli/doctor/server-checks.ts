import type { Finding } from './finding.ts';
import type { ServerFacts } from './server-facts.ts';

const SLOW_READ_MS = 50;

/** Whether each server gives a session. */
export function checkReachability(servers: readonly ServerFacts[]): Finding[] {
  return servers.map(({ name, session, trouble, version, mode }) => {
    if (!session) {
      return {
        check: 'server',
        verdict: 'fail',
        detail: `${name}: ${trouble}`,
        advice: 'see that it runs, and that nothing between here and there is in the way',
      };
    }
    const said = [version && `ZooKeeper ${version}`, mode].filter(Boolean).join(', ');
    return {
      check: 'server',
      verdict: 'ok',
      detail: `${name}: a session in ${text(session.connectMs)} ms${said && ` (${said})`}`,
    };
  });
}

/** Whether the servers belong together: several that each stand alone give one lock to several. */
export function checkEnsemble(servers: readonly ServerFacts[]): Finding {
  const check = 'ensemble';
  const modes = servers.flatMap(({ mode }) => (mode === undefined ? [] : [mode]));
  const alone = servers.filter(({ mode }) => mode === 'standalone');
  if (servers.length > 1 && alone.length > 0) {
    return {
      check,
      verdict: 'fail',
      detail: `${alone.map(({ name }) => name).join(', ')}: standalone, among ${servers.length} servers`,
      advice:
        'each server that stands alone has locks of its own, and excludes nobody on the others: name one, or an ensemble',
    };
  }
  if (modes.length < servers.length) {
    return { check, verdict: 'skip', detail: 'not every server says how it runs (srvr)' };
  }
  if (servers.length === 1) return { check, verdict: 'ok', detail: `one server, ${modes[0]}` };
  const leaders = modes.filter((mode) => mode === 'leader').length;
  return leaders === 1
    ? { check, verdict: 'ok', detail: `${servers.length} servers, one of them leads` }
    : {
        check,
        verdict: 'warn',
        detail: `${servers.length} servers, ${leaders} of them lead`,
        advice: 'name all servers of one ensemble; look again if it is electing',
      };
}

/** How long a read takes. */
export function checkLatency(servers: readonly ServerFacts[]): Finding[] {
  return servers.flatMap(({ name, session }): Finding[] => {
    if (!session) return [];
    const middle = session.readMs[Math.floor(session.readMs.length / 2)]!;
    const longest = session.readMs.at(-1)!;
    const detail = `${name}: a read takes ${text(middle)} ms, at most ${text(longest)} ms of ${session.readMs.length}`;
    if (middle <= SLOW_READ_MS && longest <= session.timeoutMs / 5)
      return [{ check: 'latency', verdict: 'ok', detail }];
    return [
      {
        check: 'latency',
        verdict: 'warn',
        detail,
        advice:
          'a lock costs a round trip and a disk write: use nearer servers, or look at their load and disks',
      },
    ];
  });
}

/** Whether a server cut off from its quorum answers. */
export function checkReadOnly(servers: readonly ServerFacts[]): Finding[] {
  return servers
    .filter(({ session }) => session?.readOnly)
    .map(({ name }) => ({
      check: 'read-only',
      verdict: 'warn',
      detail: `${name}: read-only, cut off from its quorum`,
      advice: 'no lock is granted through it: see why it cannot reach the others',
    }));
}

/**
 * Whether sessions outlive the time in which a server that was cut off from its leader still answers: shorter ones end
 * at the leader while their clients read their own locks there.
 */
export function checkSessionTimeout(servers: readonly ServerFacts[], wantedMs: number): Finding[] {
  const check = 'session-timeout';
  const granted = servers.find(({ session }) => session)?.session?.timeoutMs;
  if (granted === undefined) return [];
  const findings: Finding[] = [];
  if (granted !== wantedMs) {
    findings.push({
      check,
      verdict: 'warn',
      detail: `${wantedMs} ms asked for, ${granted} ms granted`,
      advice:
        'the servers have limits (minSessionTimeout, maxSessionTimeout): ask for what they grant, or change them',
    });
  }
  const configured = servers.find(
    ({ configuration }) => configuration?.syncLimit !== undefined,
  )?.configuration;
  if (!configured) {
    const alone = servers.length === 1 && servers[0]!.mode === 'standalone';
    const detail = alone
      ? `${granted} ms; one server, which is never cut off from its leader`
      : `${granted} ms; the servers do not tell syncLimit (allow conf, or give --admin-port)`;
    return [...findings, { check, verdict: alone ? 'ok' : 'skip', detail }];
  }
  const windowMs = configured.tickMs * configured.syncLimit!;
  const detail = `${granted} ms; a server that is cut off answers for up to ${windowMs} ms (syncLimit × tickTime)`;
  if (granted > windowMs) return [...findings, { check, verdict: 'ok', detail }];
  return [
    ...findings,
    {
      check,
      verdict: 'warn',
      detail,
      advice: `ask for more than ${windowMs} ms: programs that take "connected" for "holding" would see two holders`,
    },
  ];
}

function text(durationMs: number): string {
  return durationMs < 10 ? durationMs.toFixed(1) : String(Math.round(durationMs));
}
