import { constants } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { basename, dirname, resolve } from 'node:path';

/** The longest path of a socket that every system has room for. Node cuts a longer one off without a word. */
export const SOCKET_PATH_BYTES_MAX = 103;

/** What is behind the name of a unix socket. */
export type SocketFileState = 'listening' | 'dead' | 'missing';

/** A unix socket in a folder on which this process listens. The kernel closes it when the process ends. */
export interface ListeningFile {
  close(): Promise<void>;
}

/**
 * Listens on a new socket of that name for as long as the process runs, to show that it runs: the socket is answered
 * across PID, mount and network namespaces, as long as one kernel serves them all. Does not keep the process alive.
 */
export async function listenOnFile(path: string): Promise<ListeningFile> {
  const server = createServer((socket) => socket.destroy());
  await withShortPath(path, (short) => {
    return new Promise<void>((done, reject) => {
      server.once('error', reject);
      // Exclusive: in a worker of `node:cluster` the primary process would listen in its place.
      server.listen({ path: short, exclusive: true }, () => {
        server.off('error', reject);
        done();
      });
    });
  });
  server.unref();
  server.on('error', () => {}); // Out of descriptors: the kernel holds the peers, who need no more than that.
  const close = async () => {
    await new Promise<void>((done) => server.close(() => done()));
    await rm(path, { force: true });
  };
  return { close };
}

/** Whether a process listens there. Every error that does not say "no" counts as "yes". */
export async function probeSocketFile(path: string): Promise<SocketFileState> {
  try {
    return await withShortPath(path, probe);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'missing';
    throw error;
  }
}

function probe(path: string): Promise<SocketFileState> {
  return new Promise((done) => {
    const socket = connect(path);
    const settle = (state: SocketFileState) => {
      socket.destroy();
      done(state);
    };
    socket.once('connect', () => settle('listening'));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      // ENOTSOCK, ECONNREFUSED: what is there is no socket, or one of a process that has ended. A full queue of
      // connections (EAGAIN) and a refusal by access rights (EACCES) say that there is somebody.
      if (code === 'ENOENT' || code === 'ENOTDIR') settle('missing');
      else settle(code === 'ECONNREFUSED' || code === 'ENOTSOCK' ? 'dead' : 'listening');
    });
  });
}

/** Runs something with a path that fits into a socket's address: that of the folder as an open file, if need be. */
async function withShortPath<T>(path: string, run: (short: string) => Promise<T>): Promise<T> {
  const absolute = resolve(path);
  if (Buffer.byteLength(absolute) <= SOCKET_PATH_BYTES_MAX) return run(absolute);
  const folder = await open(dirname(absolute), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const short = `/proc/self/fd/${folder.fd}/${basename(absolute)}`;
    if (process.platform !== 'linux' || Buffer.byteLength(short) > SOCKET_PATH_BYTES_MAX) {
      throw new RangeError(`${absolute}: a socket's path has at most ${SOCKET_PATH_BYTES_MAX} bytes here`);
    }
    return await run(short);
  } finally {
    await folder.close();
  }
}
