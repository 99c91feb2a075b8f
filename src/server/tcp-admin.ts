import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { processFacts } from '../base/process-facts.ts';
import { type AdminAnswer, answerAdmin } from './admin-answers.ts';
import type { ServerCore } from './server-core.ts';

/** Where operators may ask over HTTP. */
export interface AdminOptions {
  /** The address to listen on; loopback if left out. Whoever reaches it may ask: there is no login. */
  readonly host?: string;
  /** The port; a free one if left out. */
  readonly port?: number;
}

/** What one peer may use up. */
export interface AdminLimits {
  readonly connectionsMax: number;
  readonly headerBytesMax: number;
  /** From the connection, or the end of the last answer, to the end of a request's headers. */
  readonly headersMs: number;
  /** From the end of the headers to the last byte of the answer. */
  readonly answerMs: number;
}

const defaultAdminLimits: AdminLimits = {
  connectionsMax: 64,
  headerBytesMax: 8 * 1024,
  headersMs: 5_000,
  answerMs: 30_000,
};

/** What is written at once of an answer that may be very long. */
const TEXT_LENGTH_MAX = 16 * 1024;

/** The HTTP endpoint of operators: commands as JSON, metrics, health. */
export class TcpAdmin {
  readonly #core: ServerCore;
  readonly #host: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #limits: AdminLimits;
  readonly #server: Server;
  /** Those that are connected, the one that asked or came longest ago first. */
  readonly #sockets = new Set<Socket>();
  /** Those that have not been answered yet. */
  readonly #answering = new Set<Socket>();

  constructor(
    core: ServerCore,
    options: {
      readonly host: string;
      readonly clock: Clock;
      readonly log: Log;
      readonly limits?: AdminLimits;
    },
  ) {
    const { limits = defaultAdminLimits } = options;
    this.#core = core;
    this.#host = options.host;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#limits = limits;
    this.#server = createServer(
      {
        maxHeaderSize: limits.headerBytesMax,
        headersTimeout: limits.headersMs,
        requestTimeout: limits.headersMs,
        keepAliveTimeout: limits.headersMs,
        connectionsCheckingInterval: Math.min(1_000, limits.headersMs / 2),
      },
      (request, response) => this.#handle(request, response),
    );
    this.#server.on('connection', (socket) => this.#admit(socket));
  }

  /**
   * The newest is let in: connections that ask nothing must not keep out whoever asks whether the server is well. The
   * one that has been idle for longest makes room for it.
   */
  #admit(socket: Socket): void {
    if (this.#sockets.size >= this.#limits.connectionsMax) {
      const [idle] = [...this.#sockets].filter((each) => !this.#answering.has(each));
      (idle ?? socket).destroy();
      if (!idle) return;
      this.#sockets.delete(idle);
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** Where it can be asked, e.g. `http://127.0.0.1:8080`. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: this.#host, port }, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const address = this.#server.address();
    const listening = typeof address === 'object' ? address?.port : undefined;
    const host = this.#host.includes(':') ? `[${this.#host}]` : this.#host;
    return `http://${host}:${listening}`;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const nowMs = this.#clock.nowMs();
    // A peer that takes an answer drop by drop, or never ends its request, holds nothing for longer than this.
    const cancel = this.#clock.at(nowMs + this.#limits.answerMs, () => request.socket.destroy());
    const { socket } = request;
    this.#answering.add(socket);
    response.on('close', () => {
      cancel();
      this.#answering.delete(socket);
      if (this.#sockets.delete(socket) && !socket.destroyed) this.#sockets.add(socket); // Behind the others.
    });
    const { status, type, body, headers } = this.#answer(request);
    const isShort = typeof body === 'string';
    // Nobody here reads a body: what a peer sends of one must not be taken for its next request.
    const hasBody = 'content-length' in request.headers || 'transfer-encoding' in request.headers;
    response.writeHead(status, {
      'content-type': type,
      ...(isShort && { 'content-length': Buffer.byteLength(body) }),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...(hasBody && { connection: 'close' }),
      ...headers,
    });
    if (isShort) response.end(body);
    else this.#send(response, body[Symbol.iterator]());
  }

  /** A piece of a long answer in each turn of the event loop, as fast as it is taken. */
  #send(response: ServerResponse, parts: Iterator<string>): void {
    if (response.destroyed) return;
    let text = '';
    try {
      while (text.length < TEXT_LENGTH_MAX) {
        const next = parts.next();
        if (next.done) return void response.end(`${text}\n`);
        text += next.value;
      }
    } catch (error) {
      this.#log('error', 'an admin request failed', { error });
      return void response.destroy();
    }
    const more = () => this.#send(response, parts);
    if (response.write(text)) this.#clock.afterInput(more);
    else response.once('drain', more);
  }

  #answer({ method = '', url = '', headers }: IncomingMessage): AdminAnswer {
    const core = this.#core;
    try {
      return answerAdmin(
        { method, target: url, hostHeader: headers.host },
        core,
        { host: this.#host, fourLetterWords: core.fourLetterWords },
        { nowMs: this.#clock.nowMs(), wallMs: this.#clock.wallMs(), processFacts },
      );
    } catch (error) {
      // A question that cannot be answered must not end the server.
      this.#log('error', 'an admin request failed', { url, error });
      return { status: 500, type: 'text/plain', body: 'failed\n' };
    }
  }
}
