import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { ServerKind } from './contestants.ts';
import { requestCounters } from './request-counters.ts';

const HOST = '127.0.0.1';

export interface Traffic {
  readonly requests: number;
  /** Both ways. */
  readonly bytes: number;
}

/** Between a peer and its server: counts what goes by. Never in a run that is timed. */
export class CountingProxy implements AsyncDisposable {
  readonly address: string;
  readonly #listener: Server;
  readonly #sockets = new Set<Socket>();
  #requests = 0;
  #bytes = 0;

  private constructor(listener: Server, kind: ServerKind, target: string) {
    this.#listener = listener;
    this.address = `${HOST}:${(listener.address() as AddressInfo).port}`;
    listener.on('connection', (client) => this.#join(client, kind, target));
  }

  static async start(kind: ServerKind, target: string): Promise<CountingProxy> {
    const listener = createServer({ noDelay: true });
    await new Promise<void>((resolve) => listener.listen({ host: HOST, port: 0 }, resolve));
    return new CountingProxy(listener, kind, target);
  }

  /** Since the start. */
  get traffic(): Traffic {
    return { requests: this.#requests, bytes: this.#bytes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#listener.close(resolve));
  }

  #join(client: Socket, kind: ServerKind, target: string): void {
    const [host, port] = target.split(':') as [string, string];
    const server = connect({ host, port: Number(port), noDelay: true });
    const countRequests = requestCounters[kind]();
    client.on('data', (chunk) => {
      this.#requests += countRequests(chunk);
      this.#bytes += chunk.length;
    });
    server.on('data', (chunk) => {
      this.#bytes += chunk.length;
    });
    client.pipe(server);
    server.pipe(client);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
