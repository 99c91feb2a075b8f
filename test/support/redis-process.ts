import { mkdtemp } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './free-port.ts';
import { ServerChild } from './server-child.ts';
import { until } from './until.ts';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 60_000;

/** A Redis of the test's own: on loopback, in memory only. */
export interface RedisProcess extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
}

export async function startRedis(): Promise<RedisProcess> {
  const [port] = await freePorts(1);
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-redis-'));
  const settings = { bind: HOST, port: String(port), save: '', appendonly: 'no' };
  const options = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = await ServerChild.start(folder, ['redis-server', ...options]);
  try {
    await until(
      'redis serves',
      async () => {
        if (child.exited) throw new Error(`redis exited; its log says:\n${await child.log()}`);
        return answersPing(port!);
      },
      START_TIMEOUT_MS,
    );
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
  return {
    url: `redis://${HOST}:${port}`,
    port: port!,
    pid: child.pid,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: HOST, port });
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (answer) => {
      socket.destroy();
      resolve(answer.toString('latin1').startsWith('+PONG'));
    });
  });
}
