import { type Log, silentLog } from '../../src/base/log.ts';
import type { HistoryEvent } from '../checker/history.ts';
import type { Arrival } from '../environment/simulated-network.ts';
import { Fingerprint } from './fingerprint.ts';
import { short, WireStory } from './wire-story.ts';

/** Follows what happens in a world: hashes all of it and, if somebody reads, tells it. */
export class Story {
  readonly #fingerprint = new Fingerprint();
  readonly #tell: ((line: string) => void) | undefined;
  readonly #wire = new WireStory();
  nowMs: () => number = () => 0;

  constructor(tell?: (line: string) => void) {
    this.#tell = tell;
  }

  /** The same for two runs in which the same things happened. */
  digest(): string {
    return this.#fingerprint.digest();
  }

  arrived(arrival: Arrival): void {
    const { atMs, link, to, bytes } = arrival;
    this.#fingerprint.addNumber(atMs);
    this.#fingerprint.addNumber(to === 'server' ? link : -link);
    this.#fingerprint.addBytes(bytes);
    if (this.#tell) for (const line of this.#wire.lines(arrival)) this.tell(line);
  }

  recorded(event: HistoryEvent): void {
    this.#fingerprint.addNumber(event.atMs);
    this.#fingerprint.addText(event.kind);
    if (this.#tell) this.tell(`* ${inWords(event)}`);
  }

  tell(line: string): void {
    this.#tell?.(`${this.nowMs().toFixed(1).padStart(9)}  ${line}`);
  }

  log(who: string): Log {
    if (!this.#tell) return silentLog;
    return (level, message, fields) =>
      this.tell(`${who} (${level}): ${message} ${fieldsOf(fields ?? {})}`.trimEnd());
  }
}

function inWords({ kind, atMs, ...rest }: HistoryEvent): string {
  return `${kind} ${fieldsOf(rest)}`;
}

function fieldsOf(fields: object): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${short(textOf(value))}`)
    .join(' ');
}

function textOf(value: unknown): string {
  if (typeof value === 'bigint') return `0x${BigInt.asUintN(64, value).toString(16)}`;
  if (value instanceof Error) return value.message;
  if (typeof value === 'number') return String(Math.round(value * 10) / 10);
  return typeof value === 'object'
    ? JSON.stringify(value, (_name, each: unknown) => (typeof each === 'bigint' ? textOf(each) : each))
    : String(value);
}
