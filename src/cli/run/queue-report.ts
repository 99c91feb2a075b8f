import { type Cancel, systemClock } from '../../base/clock.ts';
import { describeDuration } from '../../base/duration.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { ContenderInfo } from '../../locks/inspection.ts';
import type { Lock } from '../../locks/lock.ts';
import { visibleText } from '../terminal/visible-text.ts';
import type { WantedLock } from './run-plan.ts';
import type { Words } from './words.ts';

const REFRESH_MS = 1_000;
/** Names and reasons are anybody's: none may fill a log. */
const HOLDER_CHARACTERS_MAX = 200;

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
  #holder = '';
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
    const word = { event: 'waiting', lock: this.#text, ahead, holder: this.#holder || undefined };
    this.#words.tell(word, this.#words.isTerminal ? undefined : this.#sentence());
    this.#refresh();
  }

  async #moved(ahead: number): Promise<void> {
    const changed = this.#ahead !== undefined && ahead !== this.#ahead;
    this.#ahead = ahead;
    if (!changed) return;
    await this.#look();
    if (!this.#over) this.#words.tell({ event: 'position', lock: this.#text, ahead });
  }

  #refresh(): void {
    if (!this.#words.isTerminal || this.#over) return;
    const waitedMs = systemClock.nowMs() - this.#startedAtMs;
    this.#words.showLine(`${this.#sentence()} (${describeDuration(waitedMs)})`);
    this.#cancelRefresh = systemClock.at(systemClock.nowMs() + REFRESH_MS, () => {
      void this.#look().then(() => this.#refresh());
    });
  }

  #sentence(): string {
    const place = `number ${(this.#ahead ?? 0) + 1} in line`;
    return `waiting for ${this.#text}: ${place}${this.#holder && `, held by ${this.#holder}`}`;
  }

  /** Who is in the way. For people only: whatever goes wrong with it is nothing to the wait. */
  async #look(): Promise<void> {
    try {
      for (const name of this.#names) {
        const { holders } = await this.#holdfast.inspect(name);
        const other = holders.find(({ session }) => session !== this.#holdfast.zk.session.id);
        if (other) {
          this.#holder = describeHolder(other, this.#names.length > 1 ? name : undefined);
          return;
        }
      }
      this.#holder = '';
    } catch {
      // Not reachable just now, or not readable by us.
    }
  }
}

function describeHolder({ owner, id, since }: ContenderInfo, name: string | undefined): string {
  const { app, pid, host, reason, labels } = owner;
  const program = labels?.['command'] ?? app ?? owner.text ?? id;
  const where = [host && `on ${host}`, pid !== undefined && `process ${pid}`].filter(Boolean).join(', ');
  const parts = [
    program,
    where && ` (${where})`,
    reason && `: ${reason}`,
    ` since ${since.toLocaleTimeString('en-GB')}`,
    name && `, which has ${name}`,
  ];
  return visibleText(parts.filter(Boolean).join('')).slice(0, HOLDER_CHARACTERS_MAX);
}
