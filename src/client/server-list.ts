import { Backoff } from '../base/backoff.ts';
import { fraction, type Random, shuffled } from '../base/random.ts';
import type { DialPlan, ServerAddress } from '../session/session-io.ts';

/** After this long a connection counts as a success; before, the server may be one that greets and drops. */
const SERVED_MS_MIN = 1_000;
/** Spreads the clients that one server's end sets free; small, since a session's time is running. */
const FIRST_DELAY_MS_MAX = 50;

/**
 * The servers in random order, one after the other, for ever. Within a round there is no wait between two of
 * them; after a round in which none served, the wait grows with each further round.
 */
export class ServerList implements DialPlan {
  readonly #servers: ServerAddress[];
  readonly #backoff: Backoff;
  readonly #random: Random;
  #cursor = 0;
  #attemptCount = 0;
  #hasServed = false;

  constructor(servers: readonly ServerAddress[], random: Random) {
    this.#servers = shuffled(servers, random);
    this.#random = random;
    this.#backoff = new Backoff({ delayMsMin: 100, delayMsMax: 2_000 }, random);
  }

  get servers(): readonly ServerAddress[] {
    return this.#servers;
  }

  next(): { server: ServerAddress; delayMs: number } {
    const server = this.#servers[this.#cursor]!;
    this.#cursor = (this.#cursor + 1) % this.#servers.length;
    const delayMs = this.#delayMs();
    this.#attemptCount++;
    return { server, delayMs };
  }

  ended(servedMs: number): void {
    if (servedMs < SERVED_MS_MIN) return;
    this.#hasServed = true;
    this.#attemptCount = 0;
    this.#backoff.reset();
  }

  prefer(server: ServerAddress): void {
    const index = this.#servers.findIndex(({ host, port }) => host === server.host && port === server.port);
    if (index >= 0) this.#cursor = index;
  }

  #delayMs(): number {
    if (this.#attemptCount === 0) {
      return this.#hasServed ? Math.floor(fraction(this.#random) * FIRST_DELAY_MS_MAX) : 0;
    }
    return this.#attemptCount % this.#servers.length === 0 ? this.#backoff.nextDelayMs() : 0;
  }
}
