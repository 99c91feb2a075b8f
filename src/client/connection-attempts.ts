import { ServerBehindError, UnreachableError } from '../protocol/errors.ts';
import type { ServerAddress } from '../session/session-io.ts';
import { addressText } from './connect-string.ts';

/** So often a server is asked why it did not take us. */
const ASK_PERIOD_MS = 5_000;
/** Of each server so many failures are kept. */
const KEPT_PER_SERVER = 2;

/** What became of the attempts to connect since there was a connection: for whoever waits for one in vain. */
export class ConnectionAttempts {
  readonly #servers: readonly ServerAddress[];
  #errors: Error[] = [];
  /** Servers that were found to be behind: until there is a connection, that is why they do not take us. */
  readonly #behind = new Map<string, ServerBehindError>();
  readonly #askedAtMs = new Map<string, number>();

  constructor(servers: readonly ServerAddress[]) {
    this.#servers = servers;
  }

  succeeded(): void {
    this.#errors = [];
    this.#behind.clear();
  }

  failed(server: ServerAddress, failure: Error): void {
    const name = addressText(server);
    if (failure instanceof ServerBehindError) this.#behind.set(name, failure);
    const error = this.#behind.get(name) ?? failure;
    this.#errors.push(new Error(`${name}: ${error.message}`, { cause: error }));
    if (this.#errors.length > this.#servers.length * KEPT_PER_SERVER) this.#errors.shift();
  }

  isTimeToAsk(server: ServerAddress, nowMs: number): boolean {
    const name = addressText(server);
    if (nowMs - (this.#askedAtMs.get(name) ?? Number.NEGATIVE_INFINITY) < ASK_PERIOD_MS) return false;
    this.#askedAtMs.set(name, nowMs);
    return true;
  }

  unreachable(timeoutMs: number): UnreachableError {
    const servers = this.#servers.map(addressText);
    const last = this.#errors.at(-1);
    const message = `no session with ${servers.join(', ')} within ${timeoutMs} ms${last ? `; last: ${last.message}` : ''}`;
    const cause = new AggregateError(this.#errors, 'connection attempts');
    const areBehind = servers.every((server) => this.#behind.has(server));
    return areBehind ? new ServerBehindError(message, { cause }) : new UnreachableError(message, { cause });
  }
}
