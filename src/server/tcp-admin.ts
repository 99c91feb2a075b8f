import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
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

/** The HTTP endpoint of operators: commands as JSON, metrics, health. */
export class TcpAdmin {
  readonly #core: ServerCore;
  readonly #host: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #limits: AdminLimits;
  readonly #server: Server;

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
    this.#server.maxConnections = limits.connectionsMax;
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
    const { nowMs } = this.#core;
    // A peer that takes an answer drop by drop, or never ends its request, holds nothing for longer than this.
    const cancel = this.#clock.at(nowMs + this.#limits.answerMs, () => request.socket.destroy());
    response.on('close', cancel);
    const { status, type, body, headers } = this.#answer(request);
    // Nobody here reads a body: what a peer sends of one must not be taken for its next request.
    const hasBody = 'content-length' in request.headers || 'transfer-encoding' in request.headers;
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...(hasBody && { connection: 'close' }),
      ...headers,
    });
    response.end(body);
  }

  #answer({ method = '', url = '', headers }: IncomingMessage): AdminAnswer {
    const core = this.#core;
    try {
      return answerAdmin(
        { method, target: url, hostHeader: headers.host },
        core,
        { host: this.#host, fourLetterWords: core.fourLetterWords },
        { nowMs: core.nowMs, wallMs: this.#clock.wallMs(), processFacts },
      );
    } catch (error) {
      // A question that cannot be answered must not end the server.
      this.#log('error', 'an admin request failed', { url, error });
      return { status: 500, type: 'text/plain', body: 'failed\n' };
    }
  }
}
