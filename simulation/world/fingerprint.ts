const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;

/** A running hash of all that happened: two runs that differ anywhere have different ones. Not for secrets. */
export class Fingerprint {
  readonly #number = new Float64Array(1);
  readonly #halves = new Uint32Array(this.#number.buffer);
  #low = OFFSET;
  #high = OFFSET ^ 0x5bd1e995;

  addNumber(value: number): void {
    this.#number[0] = value;
    this.#add(this.#halves[0]!);
    this.#add(this.#halves[1]!);
  }

  addBytes(bytes: Uint8Array): void {
    let low = this.#low;
    for (let index = 0; index < bytes.length; index++) low = Math.imul(low ^ bytes[index]!, PRIME);
    this.#low = low;
    this.#add(bytes.length);
  }

  addText(text: string): void {
    let low = this.#low;
    for (let index = 0; index < text.length; index++) low = Math.imul(low ^ text.charCodeAt(index), PRIME);
    this.#low = low;
    this.#add(text.length);
  }

  /** Sixteen hexadecimal digits. */
  digest(): string {
    const hex = (half: number) => (half >>> 0).toString(16).padStart(8, '0');
    return hex(this.#high) + hex(this.#low);
  }

  #add(word: number): void {
    this.#low = Math.imul(this.#low ^ word, PRIME);
    this.#high = Math.imul((this.#high << 5) ^ (this.#high >>> 27) ^ this.#low, PRIME);
  }
}
