import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import type { AddWatchMode } from '../protocol/constants.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import { callOf } from './call-names.ts';
import { type CreateOptions, creationNames } from './operations-of-multi.ts';
import type { Session } from './session.ts';

/** What every operation takes besides its own arguments. */
export interface RequestOptions {
  /** Gives the call up: it rejects with the signal's own reason. What was sent may still be applied. */
  readonly signal?: AbortSignal;
  /** Gives the call up with a `RequestTimeoutError` after this long, connection trouble included. */
  readonly timeoutMs?: number;
  /** Fails the call with a `SessionLostError` unless the client is still in this session. */
  readonly session?: Session;
  /**
   * Sent on the connection there is, or not at all: fails with a `ConnectionLossError` that says `not-applied` rather than
   * wait for another one. @internal
   */
  readonly unqueued?: boolean;
}

/**
 * Called once for a one-shot watch, any number of times for a persistent one. What it throws is reported, and affects
 * neither other listeners nor the connection.
 */
export type WatchListener = (event: WatchEvent) => unknown;

/** The options of an operation that can leave a one-shot watch behind. */
export interface ReadOptions extends RequestOptions {
  /** Called once for the next change, or when the session is over. Set only if the read succeeds. */
  readonly watch?: WatchListener;
}

/** The options of a write that can be made to depend on the node's version. */
export interface VersionedOptions extends RequestOptions {
  /** The write happens only if the node has this version; any if left out. */
  readonly version?: number;
}

/** The options of a `sync`. */
export interface SyncOptions extends RequestOptions {
  /** Whom the server catches up with: its leader, or a quorum, which holds on the leader itself too. */
  readonly by?: 'leader' | 'quorum';
}

const request: OptionNames<RequestOptions> = {
  signal: true,
  timeoutMs: true,
  session: true,
  unqueued: true,
};
const read: OptionNames<ReadOptions> = { ...request, watch: true };
const versioned: OptionNames<VersionedOptions> = { ...request, version: true };
const creation: OptionNames<CreateOptions & RequestOptions> = { ...request, ...creationNames };
const sync: OptionNames<SyncOptions> = { ...request, by: true };

/** The options of an observation: it has no bound but its signal. */
export interface ObserveOptions {
  readonly signal?: AbortSignal;
}

/** The options of `events`. */
export interface EventsOptions extends RequestOptions {
  /** `persistent` if left out. */
  readonly mode?: AddWatchMode;
  /** How many events are kept for a reader that falls behind; 10 000 if left out. */
  readonly bufferedMax?: number;
}

const observation: OptionNames<ObserveOptions> = { signal: true };
const events: OptionNames<EventsOptions> = { ...request, mode: true, bufferedMax: true };

/** @throws TypeError as `checkRequestOptions`, for what is not one request. */
export function checkObserveOptions(call: string, options: ObserveOptions): void {
  checkOptionNames(call, options, observation);
}

/** @throws TypeError as `checkRequestOptions`, for what is not one request. */
export function checkEventsOptions(options: EventsOptions): void {
  checkOptionNames('events', options, events);
}

/** Which options a call takes, by the name of the operation that is sent. */
const namesOf: Readonly<Record<string, OptionNames<RequestOptions>>> = {
  create2: creation,
  createContainer: creation,
  createTtl: creation,
  delete: versioned,
  exists: read,
  getData: read,
  setData: versioned,
  getChildren: read,
  getChildren2: read,
  setAcl: versioned,
  sync,
  multi: sync,
};

/** @throws TypeError for what is no options object, and for an option that the call does not have. */
export function checkRequestOptions(operation: string, options: RequestOptions): void {
  checkOptionNames(callOf(operation), options, namesOf[operation] ?? request);
}
