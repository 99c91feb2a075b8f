// No library at all: the two requests of a mutex that is taken again on a bare socket, as Holdfast sends them. What is measured is the
// server, the kernel and Node; nothing that is written for Node can be much faster on that server.
import { connect } from 'node:net';
import { FrameDecoder } from '../../../src/protocol/frame-decoder.ts';
import { framed, helloFrame, ints, text } from '../../client/counting-socket.ts';
import { type LockDriver, type LockSession, serveOrders } from './serve-orders.ts';

const [, , servers] = process.argv as string[] as [string, string, string];
const SESSION_TIMEOUT_MS = 30_000;
const [CREATE, DELETE, CREATE2] = [1, 2, 15];
const [PERSISTENT, EPHEMERAL_SEQUENTIAL] = [0, 3];
const ANY_VERSION = ints(-1);
const OPEN_ACL = Buffer.concat([ints(1, 31), text('world'), text('anyone')]);
const REPLY_HEADER_LENGTH = 16;
/** As long as Holdfast's. */
const NAME = '_c_00000000-0000-4000-8000-000000000000-lock-';
const DATA = '{"host":"host","pid":10000,"app":"bare-socket","since":"2026-01-01T00:00:00.000Z"}';

const driver: LockDriver = {
  async open(): Promise<LockSession> {
    const { ask, end } = await openSession();
    let xid = 0;
    const request = (type: number, path: string, ...rest: Buffer[]) =>
      framed(Buffer.concat([ints(++xid, type), text(path), ...rest]));
    const create = (type: number, path: string, data: string, flags: number) =>
      request(type, path, text(data), OPEN_ACL, ints(flags));
    return {
      lock: (_kind, name) => {
        const folder = `/bare-${name}`;
        let made = false;
        return async () => {
          if (!made) await ask(create(CREATE, folder, '', PERSISTENT));
          made = true;
          const created = await ask(create(CREATE2, `${folder}/${NAME}`, DATA, EPHEMERAL_SEQUENTIAL));
          const path = textAt(created, REPLY_HEADER_LENGTH);
          return async () => ask(request(DELETE, path, ANY_VERSION));
        };
      },
      close: async () => end(),
    };
  },
};
await serveOrders(driver);

/** A request resolves with its reply. */
async function openSession(): Promise<{ ask(frame: Buffer): Promise<Buffer>; end(): void }> {
  const [host, port] = servers.split(',')[0]!.split(':') as [string, string];
  const frames = new FrameDecoder(1 << 20);
  const waiting: ((reply: Buffer) => void)[] = [];
  const socket = connect({
    host,
    port: Number(port),
    noDelay: true,
    onread: {
      buffer: Buffer.alloc(64 * 1024),
      callback(byteCount, buffer) {
        for (const frame of frames.push(Buffer.from(buffer.subarray(0, byteCount)))) waiting.shift()!(frame);
        return true;
      },
    },
  });
  const ask = (request: Buffer) => {
    const reply = new Promise<Buffer>((resolve) => waiting.push(resolve));
    socket.write(request);
    return reply;
  };
  await ask(helloFrame(SESSION_TIMEOUT_MS));
  return { ask, end: () => void socket.destroy() };
}

function textAt(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', at + 4, at + 4 + bytes.readInt32BE(at));
}
