import { connect, type Socket } from 'node:net';

/** What a holder asks of the resource. */
export interface WriteRequest {
  readonly id: number;
  readonly lock: string;
  readonly token: string;
  readonly mode: 'read' | 'write';
}

/** What the fenced half of it answers. */
export interface WriteAnswer {
  readonly id: number;
  readonly outcome: 'applied' | 'refused';
}

/** A worker's connection to the resource that its locks protect. */
export class ResourceClient {
  readonly #socket: Socket;
  readonly #pending = new Map<number, (outcome: WriteAnswer['outcome']) => void>();
  #lastId = 0;

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true });
    onLines(this.#socket, (line) => {
      const { id, outcome } = JSON.parse(line) as WriteAnswer;
      this.#pending.get(id)?.(outcome);
      this.#pending.delete(id);
    });
  }

  write(lock: string, token: bigint, mode: 'read' | 'write'): Promise<WriteAnswer['outcome']> {
    const request: WriteRequest = { id: ++this.#lastId, lock, token: String(token), mode };
    this.#socket.write(`${JSON.stringify(request)}\n`);
    return new Promise((resolve) => this.#pending.set(request.id, resolve));
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** Calls `listener` for each whole line. The last one of a peer that was killed while it wrote is none. */
export function onLines(socket: Socket, listener: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) listener(line);
  });
}
