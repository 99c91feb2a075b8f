// Pings over a bare socket: no client's machinery between the clock and the server.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const CONNECT_REPLY_BYTES_MIN = 40;
const PING_REPLY_BYTES = 20;
const SESSION_TIMEOUT_MS = 30_000;

/** A session of its own that can do nothing but ping. */
export class PingProbe {
  readonly #socket: Socket;
  #received = 0;
  #onReceived: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => {
      this.#received += chunk.byteLength;
      this.#onReceived();
    });
  }

  static async open(connectString: string): Promise<PingProbe> {
    const [host, port] = connectString.split(':') as [string, string];
    const socket = connect({ host, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    const probe = new PingProbe(socket);
    const handshake = Buffer.alloc(4 + 45);
    handshake.writeInt32BE(45, 0);
    handshake.writeInt32BE(SESSION_TIMEOUT_MS, 16);
    handshake.writeInt32BE(16, 28);
    await probe.#roundTrip(handshake, CONNECT_REPLY_BYTES_MIN);
    return probe;
  }

  /** How long a ping took, in milliseconds. */
  async ping(): Promise<number> {
    const frame = Buffer.alloc(12);
    frame.writeInt32BE(8, 0);
    frame.writeInt32BE(-2, 4);
    frame.writeInt32BE(11, 8);
    const sentAtMs = performance.now();
    await this.#roundTrip(frame, PING_REPLY_BYTES);
    return performance.now() - sentAtMs;
  }

  close(): void {
    this.#socket.destroy();
  }

  #roundTrip(frame: Buffer, replyBytesMin: number): Promise<void> {
    this.#received = 0;
    return new Promise((resolve, reject) => {
      const onClose = () => reject(new Error('the server closed the connection of the pings'));
      this.#socket.once('close', onClose);
      this.#onReceived = () => {
        if (this.#received < replyBytesMin) return;
        this.#socket.off('close', onClose);
        resolve();
      };
      this.#socket.write(frame);
    });
  }
}
