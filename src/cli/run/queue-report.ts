import { type Cancel, systemClock } from '../../base/clock.ts';
import { describeDuration } from '../../base/duration.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { ContenderInfo, LockInfo } from '../../locks/inspection.ts';
import type { Lock } from '../../locks/lock.ts';
import { ownerText } from '../owner-text.ts';
import { type LinePart, placeText } from '../terminal/fitted-line.ts';
import type { WantedLock } from './run-plan.ts';
import type { Words } from './words.ts';

const REFRESH_MS = 1_000;

/**
 * Tells people and programs how a wait goes. On a terminal one line that is kept current; otherwise a line when it turns
 * out that there is a wait, and one when it is over.
 */
export class QueueReport {
  readonly #holdfast: Holdfast;
  readonly #names: readonly string[];
  readonly #text: string;
  readonly #words: Words;
  readonly #startedAtMs = systemClock.nowMs();
  readonly #stopListening: (() => void)[];
  #ahead: number | undefined;
  /** Among those who wait, 1 is next; undefined until it was seen. */
  #place: number | undefined;
  #holder: { readonly info: ContenderInfo; readonly lockName: string | undefined } | undefined;
  #reachable = true;
  #looking: Promise<void> | undefined;
  #cancelRefresh: Cancel = () => {};
  #over = false;

  constructor(
    holdfast: Holdfast,
    lock: Pick<Lock, 'on'>,
    { wanted, text, words }: { readonly wanted: WantedLock; readonly text: string; readonly words: Words },
  ) {
    this.#holdfast = holdfast;
    this.#names = wanted.kind === 'multi' ? wanted.names : [wanted.name];
    this.#text = text;
    this.#words = words;
    this.#stopListening = [
      lock.on('waiting', ({ ahead }) => void this.#begin(ahead)),
      lock.on('position', ({ ahead }) => void this.#moved(ahead)),
      holdfast.zk.on('suspended', () => this.#reached(false)),
      holdfast.zk.on('connected', () => this.#reached(true)),
    ];
  }

  /** Whether there was any wait to speak of. */
  get waited(): boolean {
    return this.#ahead !== undefined;
  }

  end(): void {
    this.#over = true;
    this.#cancelRefresh();
    for (const stop of this.#stopListening) stop();
    this.#words.clearLine();
  }

  async #begin(ahead: number): Promise<void> {
    this.#ahead = ahead;
    await this.#look();
    if (this.#over) return;
    const holder = this.#holderParts()
      .map(({ text }) => text)
      .join('');
    const word = {
      event: 'waiting',
      lock: this.#text,
      ahead,
      place: this.#placeNow,
      holder: holder === '' ? undefined : holder,
    };
    this.#words.tell(word, this.#words.isTerminal ? undefined : this.#sentence());
    this.#refresh();
  }

  async #moved(ahead: number): Promise<void> {
    const changed = this.#ahead !== undefined && ahead !== this.#ahead;
    this.#ahead = ahead;
    if (!changed) return;
    await this.#look();
    if (this.#over) return;
    this.#words.tell({ event: 'position', lock: this.#text, ahead, place: this.#placeNow });
    this.#refresh();
  }

  #reached(reachable: boolean): void {
    if (this.#reachable === reachable || this.#over) return;
    this.#reachable = reachable;
    if (this.#ahead === undefined) return;
    this.#words.tell({ event: reachable ? 'reachable' : 'unreachable', lock: this.#text });
    this.#refresh();
  }

  /** What is known is shown at once, and again each second, whether or not the servers answer. */
  #refresh(): void {
    if (!this.#words.isTerminal || this.#over) return;
    this.#cancelRefresh();
    this.#words.showLine(this.#parts());
    this.#cancelRefresh = systemClock.at(systemClock.nowMs() + REFRESH_MS, () => {
      void this.#look();
      this.#refresh();
    });
  }

  /** For a log, which has its own time and no width. */
  #sentence(): string {
    return this.#parts()
      .filter(({ weight }) => weight !== WEIGHTS.waited)
      .map(({ text }) => text)
      .join('');
  }

  #parts(): LinePart[] {
    const waitedMs = systemClock.nowMs() - this.#startedAtMs;
    const place = placeText(this.#placeNow);
    return [
      { text: `waiting for ${this.#text}`, weight: WEIGHTS.lock },
      ...(this.#reachable
        ? [{ text: `: ${place}`, weight: WEIGHTS.place }]
        : [
            { text: ': no server answers', weight: WEIGHTS.unreachable },
            { text: `, was ${place}`, weight: WEIGHTS.since },
          ]),
      ...this.#holderParts().map(({ text, weight }, at) => ({
        text: at > 0 ? text : this.#reachable ? `, held by ${text}` : `, was held by ${text}`,
        weight: this.#reachable ? weight : WEIGHTS.since,
      })),
      { text: `, waited ${describeDuration(waitedMs)}`, weight: WEIGHTS.waited },
    ];
  }

  #holderParts(): LinePart[] {
    if (!this.#holder) return [];
    const { info, lockName } = this.#holder;
    const { reason } = info.owner;
    const parts: LinePart[] = [
      { text: ownerText(info), weight: WEIGHTS.holder },
      { text: ` since ${info.since.toLocaleTimeString('en-GB')}`, weight: WEIGHTS.since },
    ];
    if (lockName !== undefined) parts.push({ text: `, which has ${lockName}`, weight: WEIGHTS.since });
    if (reason !== undefined)
      parts.push({ text: `: ${reason.slice(0, REASON_CHARACTERS_MAX)}`, weight: WEIGHTS.reason });
    return parts;
  }

  get #placeNow(): number {
    // As the queue was on joining: one holder, unless a look has shown more.
    return this.#place ?? Math.max(1, this.#ahead ?? 1);
  }

  /** Who is in the way, and where we stand. For people only: whatever goes wrong with it is nothing to the wait. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookNow()
      .catch(() => {}) // Not reachable just now, or not readable by us.
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #lookNow(): Promise<void> {
    const locks = await Promise.all(this.#names.map((name) => this.#holdfast.inspect(name)));
    const own = this.#holdfast.zk.session.id;
    const places = locks.map(({ queue }) => queue.findIndex(({ session }) => session === own) + 1);
    this.#place = Math.max(...places) || undefined;
    this.#holder = firstOther(locks, own);
    if (this.#holder && locks.length === 1) this.#holder = { ...this.#holder, lockName: undefined };
  }
}

/** What matters most to the one who waits. */
const WEIGHTS = { reason: 0, since: 1, waited: 2, holder: 3, place: 4, lock: 5, unreachable: 6 } as const;
/** A reason is anybody's: it may not fill a log. */
const REASON_CHARACTERS_MAX = 200;

function firstOther(locks: readonly LockInfo[], own: bigint) {
  for (const { name, holders } of locks) {
    const info = holders.find(({ session }) => session !== own);
    if (info) return { info, lockName: name as string | undefined };
  }
  return undefined;
}
