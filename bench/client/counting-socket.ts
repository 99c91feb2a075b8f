// A connection and nothing else: requests are put together once, answers are counted by their length and not read.
import { connect, type Socket } from 'node:net';

/** What can be asked; each resolves when as many bytes have come as all answers up to its own have. */
export interface CountingSocket {
  get(path: string, dataLength: number): Promise<void>;
  set(path: string, data: Buffer): Promise<void>;
  watchAbsent(path: string): Promise<void>;
}

const HEADER_LENGTH = 4 + 16;
const STAT_LENGTH = 68;
const GET_DATA = 4;
const SET_DATA = 5;
const EXISTS = 3;

/** Opens a session on the first of the servers. */
export async function countingSocket(servers: string, timeoutMs: number): Promise<CountingSocket> {
  const [host, port] = servers.split(',')[0]!.split(':') as [string, string];
  const expected: { readonly untilBytes: number; resolve(): void }[] = [];
  let [bytesExpected, bytesReceived, next] = [0, 0, 0];
  const socket: Socket = connect({
    host,
    port: Number(port),
    noDelay: true,
    onread: {
      buffer: Buffer.alloc(64 * 1024),
      callback(byteCount) {
        bytesReceived += byteCount;
        while (next < expected.length && expected[next]!.untilBytes <= bytesReceived)
          expected[next++]!.resolve();
        if (next === expected.length) next = expected.length = 0;
        return true;
      },
    },
  });
  socket.on('error', (error) => {
    throw error;
  });
  let gathered: Buffer[] = [];
  const ask = (frame: Buffer, answerLength: number) => {
    if (gathered.push(frame) === 1) {
      process.nextTick(() => {
        socket.write(Buffer.concat(gathered));
        gathered = [];
      });
    }
    bytesExpected += answerLength;
    const untilBytes = bytesExpected;
    return new Promise<void>((resolve) => expected.push({ untilBytes, resolve }));
  };
  const request = (type: number, path: string, rest: Buffer) =>
    framed(Buffer.concat([ints(1, type), text(path), rest]));
  await ask(helloFrame(timeoutMs), 4 + 4 + 4 + 8 + 4 + 16 + 1);
  const noWatch = Buffer.from([0]);
  return {
    get: (path, dataLength) =>
      ask(request(GET_DATA, path, noWatch), HEADER_LENGTH + 4 + dataLength + STAT_LENGTH),
    set: (path, data) =>
      ask(
        request(SET_DATA, path, Buffer.concat([ints(data.length), data, ints(-1)])),
        HEADER_LENGTH + STAT_LENGTH,
      ),
    watchAbsent: (path) => ask(request(EXISTS, path, Buffer.from([1])), HEADER_LENGTH),
  };
}

/** What asks for a new session. */
export function helloFrame(timeoutMs: number): Buffer {
  const hello = Buffer.alloc(4 + 8 + 4 + 8 + 4 + 16 + 1);
  hello.writeInt32BE(timeoutMs, 12);
  hello.writeInt32BE(16, 24);
  return framed(hello);
}

export function framed(body: Buffer): Buffer {
  return Buffer.concat([ints(body.length), body]);
}

export function text(value: string): Buffer {
  return Buffer.concat([ints(Buffer.byteLength(value)), Buffer.from(value)]);
}

export function ints(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeInt32BE(value, index * 4);
  return bytes;
}
