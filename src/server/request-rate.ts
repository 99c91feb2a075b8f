const SECOND_MS = 1_000;
/** Less than one because of rounding, and no reason to wait again. */
const WHOLE = 1 - 1e-6;

/** A bucket that holds one second's worth of requests and fills evenly: how fast one connection may ask. */
export class RequestRate {
  readonly #perSecondMax: number;
  readonly #capacity: number;
  #tokens: number;
  #atMs: number;

  constructor(perSecondMax: number, nowMs: number) {
    this.#perSecondMax = perSecondMax;
    this.#capacity = Math.max(1, perSecondMax);
    this.#tokens = this.#capacity;
    this.#atMs = nowMs;
  }

  /** Takes one request's worth; if there is none, says when there will be. */
  take(nowMs: number): { readonly taken: true } | { readonly taken: false; readonly atMs: number } {
    const filled = this.#tokens + ((nowMs - this.#atMs) * this.#perSecondMax) / SECOND_MS;
    this.#tokens = Math.min(this.#capacity, filled);
    this.#atMs = nowMs;
    if (this.#tokens >= WHOLE) {
      this.#tokens--;
      return { taken: true };
    }
    return { taken: false, atMs: nowMs + ((1 - this.#tokens) * SECOND_MS) / this.#perSecondMax };
  }
}
