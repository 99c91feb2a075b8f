import { encodeEvent, type HistoryEvent } from './history.ts';

/** What a lock promises, by the names of docs/testing.md. */
export type Property =
  | 'L1'
  | 'L1u'
  | 'L2'
  | 'L3'
  | 'L3b'
  | 'L3c'
  | 'L4'
  | 'L5'
  | 'L6'
  | 'L7'
  | 'L8'
  | 'L9'
  | 'L10'
  | 'L11'
  | 'L11b'
  | 'L12'
  | 'L13'
  | 'L14'
  | 'L15';

/** A promise that was not kept. */
export interface Violation {
  readonly property: Property;
  readonly atMs: number;
  /** A sentence for people. */
  readonly message: string;
  readonly lock?: string;
  /** Who is involved. */
  readonly attempts: readonly string[];
}

/** How far the recorder's word is to be taken, and how long things may take. */
export interface CheckOptions {
  /**
   * How much later than it happened something may have been recorded, or a timer have fired, without the client having
   * said that it stalled. 0 under a virtual clock.
   */
  readonly latenessMs: number;
  /** How long after everything was well again, or after it was asked, an attempt may still be pending. */
  readonly settleMsMax: number;
}

/**
 * A violation with what happened around it: all events of those involved, and all of the lock and all faults within
 * some time of it.
 */
export function tellViolation(
  { property, atMs, message, lock, attempts }: Violation,
  events: readonly HistoryEvent[],
  aroundMs = 200,
): string {
  const involved = new Set(attempts);
  const clients = new Set<string>();
  const ofLock = new Set<string>();
  for (const event of events) {
    if (event.kind !== 'asked') continue;
    if (involved.has(event.attempt)) clients.add(event.client);
    if (lock !== undefined && event.locks.includes(lock)) ofLock.add(event.attempt);
  }
  const told = events.filter((event) => {
    if ('attempt' in event && involved.has(event.attempt)) return true;
    if ('client' in event && event.kind !== 'asked' && clients.has(event.client)) return true;
    if (Math.abs(event.atMs - atMs) > aroundMs) return false;
    if ('attempt' in event) return ofLock.has(event.attempt);
    return event.kind.startsWith('fault') || ('lock' in event && event.lock === lock);
  });
  const lines = told.map((event) => {
    const mark = 'attempt' in event && involved.has(event.attempt) ? '>' : ' ';
    return `${mark} ${event.atMs.toFixed(3).padStart(14)}  ${encodeEvent(event)}`;
  });
  return `${property} at ${atMs.toFixed(3)} ms: ${message}\n${lines.join('\n')}`;
}
