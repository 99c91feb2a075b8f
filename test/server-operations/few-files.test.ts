import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { until } from '../support/until.ts';

const FILES_MAX = 120;

interface Said {
  readonly port?: number;
  readonly level?: string;
  readonly message?: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

test('a server that runs out of file descriptors says so, once, and goes on', async () => {
  const file = new URL('./few-files-process.ts', import.meta.url).pathname;
  const child = spawn(
    'bash',
    ['-c', `ulimit -n ${FILES_MAX} && exec "$0" "$@"`, process.execPath, '--import', 'tsx', file],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
  );
  const said: Said[] = [];
  child.on('message', (message) => said.push(message as Said));
  const sockets: Socket[] = [];
  try {
    await until('it listens', () => said.some(({ port }) => port !== undefined));
    const { port } = said.find((each) => each.port !== undefined)!;
    const dial = () => {
      const socket = connect({ host: '127.0.0.1', port: port! });
      socket.on('error', () => {});
      sockets.push(socket);
      return socket;
    };
    const errors = () => said.filter(({ level }) => level === 'error');
    while (sockets.length < 2 * FILES_MAX) await once(dial(), 'connect');
    await until('it is said', () => errors().length > 0);
    expect(errors()).toMatchObject([
      {
        message: 'out of file descriptors: connections are refused by the system',
        fields: { max: FILES_MAX },
      },
    ]);
    for (const socket of sockets) socket.destroy();
    await until('it can be asked again', async () => {
      const socket = dial();
      socket.write('ruok');
      let answer = '';
      try {
        for await (const chunk of socket) answer += chunk;
      } catch {
        return false; // It has not closed enough of the others.
      }
      return answer === 'imok';
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
});
