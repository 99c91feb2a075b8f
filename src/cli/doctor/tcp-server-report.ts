import { connect } from 'node:net';
import { systemClock } from '../../base/clock.ts';

const ANSWER_BYTES_MAX = 64 * 1024;

/** One of ZooKeeper's four-letter words; undefined if it is not answered in time, or not allowed there. */
export function askServer(
  { host, port }: { readonly host: string; readonly port: number },
  word: 'srvr' | 'conf',
  timeoutMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect({ host, port }, () => socket.write(word));
    const settle = (text: string | undefined) => {
      cancel();
      socket.destroy();
      resolve(text === undefined || text === '' || text.includes('not in the whitelist') ? undefined : text);
    };
    const cancel = systemClock.at(systemClock.nowMs() + timeoutMs, () => settle(undefined));
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      answer += text;
      if (answer.length > ANSWER_BYTES_MAX) settle(undefined); // Whatever that is, it is no ZooKeeper.
    });
    socket.on('end', () => settle(answer));
    socket.on('error', () => settle(undefined));
  });
}

/** What ZooKeeper's AdminServer says of the configuration; undefined if there is none, or something else answers. */
export async function askAdminServer(
  host: string,
  port: number,
  timeoutMs: number,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const name = host.includes(':') ? `[${host}]` : host;
  try {
    const response = await fetch(`http://${name}:${port}/commands/configuration`, {
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answer: unknown = await response.json();
    return typeof answer === 'object' && answer !== null ? { ...answer } : undefined;
  } catch {
    return undefined;
  }
}
