import { Backoff } from '../base/backoff.ts';
import { fraction, type Random, shuffled } from '../base/random.ts';
import type { DialPlan, ServerAddress } from '../session/session-io.ts';

/** After this long a connection counts as a success; before, the server may be one that greets and drops. */
const SERVED_MS_MIN = 1_000;
/** Spreads the clients that one server's end sets free; small, since a session's time is running. */
const FIRST_DELAY_MS_MAX = 50;
/** What a thousand clients may ask of servers that elect a leader; bench/client/failover.ts shows what others cost. */
const BACKOFF_MS = { delayMsMin: 100, delayMsMax: 1_000 };

/**
 * The servers in random order, one after the other, for ever. A server that is not reached, or whose connection is cut,
 * is followed by the next one at once. One that is reached and grants no session is probably not alone in that: an
 * ensemble that elects a leader accepts every connection and closes it. So the next attempt waits, and longer each time;
 * as it does after a round in which no connection lasted.
 */
export class ServerList implements DialPlan {
  readonly #servers: ServerAddress[];
  readonly #backoff: Backoff;
  readonly #random: Random;
  /** Which servers have refused which credentials; 'accepted' once any has taken them. */
  readonly #refusals = new Map<object, Set<ServerAddress> | 'accepted'>();
  #cursor = 0;
  #attempt: 'first' | 'next' | 'delayed' = 'first';
  #fruitlessCount = 0;
  #hasServed = false;
  #isPreferred = false;

  constructor(servers: readonly ServerAddress[], random: Random) {
    this.#servers = shuffled(servers, random);
    this.#random = random;
    this.#backoff = new Backoff(BACKOFF_MS, random);
  }

  get servers(): readonly ServerAddress[] {
    return this.#servers;
  }

  next(): { server: ServerAddress; delayMs: number } {
    const server = this.#servers[this.#cursor]!;
    this.#cursor = (this.#cursor + 1) % this.#servers.length;
    const delayMs = this.#isPreferred ? 0 : this.#delayMs();
    this.#attempt = 'next';
    this.#isPreferred = false;
    return { server, delayMs };
  }

  ended({ servedMs, opened }: { readonly servedMs: number; readonly opened: boolean }): void {
    if (servedMs >= SERVED_MS_MIN) {
      this.#hasServed = true;
      this.#attempt = 'first';
      this.#fruitlessCount = 0;
      this.#backoff.reset();
    } else if ((opened && servedMs === 0) || ++this.#fruitlessCount === this.#servers.length) {
      this.#attempt = 'delayed';
      this.#fruitlessCount = 0;
    }
  }

  prefer(server: ServerAddress): void {
    const index = this.#servers.findIndex(({ host, port }) => host === server.host && port === server.port);
    if (index < 0) return;
    this.#cursor = index;
    this.#isPreferred = true;
  }

  refused(server: ServerAddress, credentials: object): boolean {
    const servers = this.#refusals.get(credentials) ?? new Set();
    if (servers === 'accepted') return false;
    this.#refusals.set(credentials, servers.add(server));
    return servers.size === this.#servers.length;
  }

  accepted(credentials: object): void {
    this.#refusals.set(credentials, 'accepted');
  }

  #delayMs(): number {
    switch (this.#attempt) {
      case 'first':
        return this.#hasServed ? Math.floor(fraction(this.#random) * FIRST_DELAY_MS_MAX) : 0;
      case 'next':
        return 0;
      case 'delayed':
        return this.#backoff.nextDelayMs();
    }
  }
}
