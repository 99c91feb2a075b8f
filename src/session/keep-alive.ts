import type { Contact } from './contact.ts';

const PROBE_MS_MIN = 100;
const PROBE_MS_MAX = 60_000;

/** What is to be sent, of itself, to keep a session alive on an open connection. */
export type Beat = 'ping' | 'heartbeat' | undefined;

/** When an open connection needs a ping, a heartbeat that the leader confirms, or a look for a better server. */
export class KeepAlive {
  readonly #contact: Contact;
  #pingsSentAtMs: number[] = [];
  #seekAtMs = Number.POSITIVE_INFINITY;
  #seekDelayMs = PROBE_MS_MIN;

  constructor(contact: Contact) {
    this.#contact = contact;
  }

  /** A connection opened. On a read-only one, a read-write server is sought: soon, then less and less often. */
  opened(readOnly: boolean, nowMs: number): void {
    this.#pingsSentAtMs = [];
    this.#seekDelayMs = PROBE_MS_MIN;
    this.#seekAtMs = readOnly ? nowMs + this.#seekDelayMs : Number.POSITIVE_INFINITY;
  }

  /** `holding`: something is held, so the heartbeat must be one that the leader confirms. */
  wakeAtMs(holding: boolean): number {
    const { pingAtMs, linkDeadMs, heartbeatAtMs } = this.#contact;
    const atMs = Math.min(pingAtMs, linkDeadMs, this.#seekAtMs);
    return holding ? Math.min(atMs, heartbeatAtMs) : atMs;
  }

  beat(nowMs: number, holding: boolean): Beat {
    if (holding && nowMs >= this.#contact.heartbeatAtMs) return 'heartbeat';
    if (nowMs < this.#contact.pingAtMs) return undefined;
    this.#pingsSentAtMs.push(nowMs);
    return 'ping';
  }

  /** When the ping was sent that this answer is for, or undefined if none was. */
  pingAnswered(): number | undefined {
    return this.#pingsSentAtMs.shift();
  }

  isTimeToSeek(nowMs: number): boolean {
    if (nowMs < this.#seekAtMs) return false;
    this.#seekDelayMs = Math.min(PROBE_MS_MAX, this.#seekDelayMs * 2);
    this.#seekAtMs = nowMs + this.#seekDelayMs;
    return true;
  }
}
