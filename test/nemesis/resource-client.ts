import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

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
    createInterface({ input: this.#socket }).on('line', (line) => {
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
