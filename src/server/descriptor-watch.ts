import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';

/** With fewer left than this, connections will soon be refused by the system, without a word to the server. */
const FEW = 16;
const SILENCE_MS = 60_000;

/**
 * Says in the log when the process runs out of file descriptors. The system closes connections then that the server
 * never hears of, so it has to be said before. A new descriptor is the lowest number that is free: one near the limit
 * means that nearly all are taken.
 */
export class DescriptorWatch {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #descriptorsMax: number;
  #silentUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: { readonly clock: Clock; readonly log: Log; readonly descriptorsMax: number }) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#descriptorsMax = options.descriptorsMax;
  }

  /** A connection was accepted that has this descriptor. */
  opened(descriptor: number): void {
    if (descriptor < this.#descriptorsMax - FEW) return;
    const nowMs = this.#clock.nowMs();
    if (nowMs < this.#silentUntilMs) return;
    this.#silentUntilMs = nowMs + SILENCE_MS;
    this.#log('error', 'out of file descriptors: connections are refused by the system', {
      open: descriptor + 1,
      max: this.#descriptorsMax,
    });
  }
}
