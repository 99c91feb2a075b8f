import type { ServerLimits } from './server-limits.ts';

type AdmissionLimits = Pick<
  ServerLimits,
  'connectionsMax' | 'connectionsPerAddressMax' | 'connectionsPerLoopbackMax'
>;

/** Gives a place back. Calling it twice does nothing. */
export type Leave = () => void;

/**
 * Who may connect at all: counts sockets from their first moment, before a TLS handshake, to their last, since a
 * socket that is stalled on either end costs as much as one that works.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #countByAddress = new Map<string, number>();
  #count = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#count;
  }

  /** How many addresses have a place: what the bookkeeping itself costs. */
  get addressCount(): number {
    return this.#countByAddress.size;
  }

  /** Takes a place for a connection from this address; undefined if there is none left. */
  enter(address: string): Leave | undefined {
    const { connectionsMax, connectionsPerAddressMax, connectionsPerLoopbackMax } = this.#limits;
    const sameAddress = this.#countByAddress.get(address) ?? 0;
    const sameAddressMax = isLoopback(address) ? connectionsPerLoopbackMax : connectionsPerAddressMax;
    if (this.#count >= connectionsMax || sameAddress >= sameAddressMax) return undefined;
    this.#count++;
    this.#countByAddress.set(address, sameAddress + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#leave(address);
    };
  }

  #leave(address: string): void {
    this.#count--;
    const remaining = this.#countByAddress.get(address)! - 1;
    if (remaining === 0) this.#countByAddress.delete(address);
    else this.#countByAddress.set(address, remaining);
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
