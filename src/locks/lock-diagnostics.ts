import { channel } from 'node:diagnostics_channel';
import type { LockLostError } from './lock-errors.ts';

/** As what a lock is taken. */
export type LockUse =
  | 'mutex'
  | 'read'
  | 'write'
  | 'upgradable'
  | 'semaphore'
  | 'multi'
  | 'election'
  | 'simple';

/** One acquire, from its start to its end: the same object in each of its messages, which fills up. */
export interface AcquireMessage {
  readonly lockName: string;
  readonly use: LockUse;
  /** `tryAcquire`: it does not wait for others. */
  readonly trying: boolean;
  /** How many were ahead when it was first found to have to wait; 0 until then. */
  ahead: number;
  /** Round trips one after another, as the recipe takes them; not what a lost connection or a missing folder costs. */
  roundTrips: number;
  /** At the end. */
  outcome?: 'granted' | 'busy' | 'failed';
  durationMs?: number;
  /** If granted. */
  token?: bigint;
  /** If it failed: a time-out, an abort, anything. */
  error?: unknown;
}

/** One hold, from its grant to its end: the same object in each of its messages. */
export interface HoldMessage {
  readonly lockName: string;
  readonly use: LockUse;
  readonly token: bigint;
  /** At the end. */
  heldMs?: number;
  /** If it was lost. */
  error?: LockLostError;
}

/** The names of the channels of `node:diagnostics_channel`, and what each carries. */
export interface LockChannels {
  'holdfast:lock:acquire:start': AcquireMessage;
  'holdfast:lock:acquire:wait': AcquireMessage;
  'holdfast:lock:acquire:end': AcquireMessage;
  'holdfast:lock:grant': HoldMessage;
  'holdfast:lock:revoked': HoldMessage;
  'holdfast:lock:release': HoldMessage;
  'holdfast:lock:lost': HoldMessage;
}

const acquireStart = channel('holdfast:lock:acquire:start');
const acquireWait = channel('holdfast:lock:acquire:wait');
const acquireEnd = channel('holdfast:lock:acquire:end');
const holdChannels = {
  grant: channel('holdfast:lock:grant'),
  revoked: channel('holdfast:lock:revoked'),
  release: channel('holdfast:lock:release'),
  lost: channel('holdfast:lock:lost'),
};

/** Tells that an acquire begins; undefined if nobody listens to any of it, and nothing is made then. */
export function traceAcquire(
  lockName: string,
  use: LockUse,
  options: { readonly trying: boolean },
): AcquireMessage | undefined {
  if (!acquireStart.hasSubscribers && !acquireWait.hasSubscribers && !acquireEnd.hasSubscribers) {
    return undefined;
  }
  const message: AcquireMessage = { lockName, use, trying: options.trying, ahead: 0, roundTrips: 0 };
  acquireStart.publish(message);
  return message;
}

/** Tells that others go first. */
export function traceWait(message: AcquireMessage | undefined, ahead: number): void {
  if (!message) return;
  if (message.ahead === 0) message.ahead = ahead;
  acquireWait.publish(message);
}

/** Tells how an acquire ended. */
export function traceAcquired(
  message: AcquireMessage | undefined,
  end: Required<Pick<AcquireMessage, 'outcome' | 'durationMs'>> & Pick<AcquireMessage, 'token' | 'error'>,
): void {
  if (!message) return;
  acquireEnd.publish(Object.assign(message, end));
}

/** What happens to one hold. */
export type HoldStep = keyof typeof holdChannels;

/** Whether anyone wants to know: what nobody listens to is not made. */
export function isHeard(step: HoldStep): boolean {
  return holdChannels[step].hasSubscribers;
}

/** Tells of a step of one hold. */
export function traceHold(step: HoldStep, message: HoldMessage): void {
  holdChannels[step].publish(message);
}
