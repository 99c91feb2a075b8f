import { type ErrorRow, ZkError } from '../protocol/errors.ts';
import type { LockInfo } from './inspection.ts';

/** What went wrong with one lock. `lockName` says which. */
export abstract class LockError extends ZkError {
  static override readonly brand: string = 'LockError';
  abstract override readonly code: `LOCK_${string}`;
  readonly scope = 'lock';
  readonly lockName: string;

  constructor(lockName: string, message: string, options?: ErrorOptions) {
    super(`lock ${lockName}: ${message}`, options);
    this.lockName = lockName;
  }
}

/** What a contender saw when it last looked at the queue, and who held the lock when it asked. */
export interface WaitLook {
  ahead?: number;
  behind?: string;
  holder?: string;
  since?: Date;
  waiting?: number;
}

/** The time for waiting ran out while others held it. The queue was left; nothing stays behind. */
export class LockTimeoutError extends LockError {
  static override readonly brand: string = 'LockTimeoutError';
  readonly code = 'LOCK_TIMEOUT';
  readonly outcome = 'not-applied';

  /** How many were ahead in the queue when it was last looked at; undefined if it had not been looked at yet. */
  declare readonly ahead?: number;
  /** The id of the nearest of them that was in the way, as `inspect` shows it. */
  declare readonly behind?: string;

  /** Who held it when three quarters of the time had passed, as `app@host:pid`; undefined if that is not known. */
  declare readonly holder?: string;
  /** When the holder's node was made, by the server's clock. */
  declare readonly since?: Date;
  /** How many waited for it then, this one included. */
  declare readonly waiting?: number;

  constructor(lockName: string, timeoutMs: number, look: WaitLook = {}) {
    const { ahead, behind, holder, since, waiting } = look;
    const held = holder === undefined ? '' : `: held by ${holder} (node made ${since?.toISOString()})`;
    const waited = waiting === undefined ? '' : `${held ? ',' : ':'} ${waiting} waiting`;
    const seen =
      ahead === undefined
        ? ''
        : `${held || waited ? ';' : ':'} ${ahead} ahead when last looked at, waited for ${behind}`;
    super(lockName, `not granted within ${timeoutMs} ms${held}${waited}${seen}`);
    if (ahead !== undefined) this.ahead = ahead;
    if (behind !== undefined) this.behind = behind;
    if (holder !== undefined) this.holder = holder;
    if (since !== undefined) this.since = since;
    if (waiting !== undefined) this.waiting = waiting;
  }
}

/** No server could be reached in the time that was given. */
export class LockUnreachableError extends LockError {
  static override readonly brand: string = 'LockUnreachableError';
  readonly code = 'LOCK_UNREACHABLE';
  readonly outcome = 'not-applied';
}

/** How the work under a lock ended. */
export type WorkEnd = { readonly result: unknown } | { readonly thrown: unknown };

/**
 * Exclusivity can no longer be promised: another may hold it from now on. Where `use` or `locks.request` reject with it
 * because the lock was lost while the work ran, `cause` says how it was lost.
 */
export class LockLostError extends LockError {
  static override readonly brand: string = 'LockLostError';
  readonly code = 'LOCK_LOST';
  readonly outcome = 'unknown';
  /** What the work under the lock returned: some or all of it may have been done after the loss. */
  declare readonly result?: unknown;
  /** What the work under the lock threw, unless that was the loss itself. */
  declare readonly thrown?: unknown;

  constructor(lockName: string, message: string, options: ErrorOptions & Partial<WorkEnd> = {}) {
    super(lockName, message, options);
    if ('result' in options) this.result = options.result;
    if ('thrown' in options) this.thrown = options.thrown;
  }
}

/** Someone asks the holder to let go. It is still held, until it is released. */
export class LockRevokedError extends LockError {
  static override readonly brand: string = 'LockRevokedError';
  readonly code = 'LOCK_REVOKED';
  readonly outcome = 'not-applied';
}

/** The lease was released by this program. */
export class LockReleasedError extends LockError {
  static override readonly brand: string = 'LockReleasedError';
  readonly code = 'LOCK_RELEASED';
  readonly outcome = 'not-applied';
}

/** The contender was removed from the queue by someone else while it waited. */
export class ContenderEvictedError extends LockError {
  static override readonly brand: string = 'ContenderEvictedError';
  readonly code = 'LOCK_CONTENDER_EVICTED';
  readonly outcome = 'not-applied';
}

/** A reader cannot become a writer just now, or a nested `use` would wait for itself. What is held is held on. */
export class LockUpgradeError extends LockError {
  static override readonly brand: string = 'LockUpgradeError';
  readonly code = 'LOCK_UPGRADE';
  readonly outcome = 'not-applied';
}

/** There is a lock of another kind under this name. */
export class WrongKindError extends LockError {
  static override readonly brand: string = 'WrongKindError';
  readonly code = 'LOCK_WRONG_KIND';
  readonly outcome = 'not-applied';
}

/**
 * Something else is in the lock's folder. Other programs may take it for a contender, or not see ours: nobody could
 * say who holds the lock.
 */
export class ForeignNodeError extends LockError {
  static override readonly brand: string = 'ForeignNodeError';
  readonly code = 'LOCK_FOREIGN_NODE';
  readonly outcome = 'not-applied';
}

/** Who was named does not hold the lock: nothing was done. `holders` are the ids of those who do. */
export class NotHolderError extends LockError {
  static override readonly brand: string = 'NotHolderError';
  readonly code = 'LOCK_NOT_HOLDER';
  readonly outcome = 'not-applied';
  readonly holders: readonly string[];

  constructor(lockName: string, named: string, { holders, queue }: LockInfo, options?: ErrorOptions) {
    const place = queue.some(({ id }) => id === named) ? 'waits and does not hold it' : 'does not hold it';
    super(lockName, `${named} ${place}`, options);
    this.holders = holders.map(({ id }) => id);
  }
}

/** The resource has seen a later token: whoever carries this one has been overtaken. */
export class StaleTokenError extends ZkError {
  static override readonly brand: string = 'StaleTokenError';
  readonly code = 'LOCK_STALE_TOKEN';
  readonly scope = 'resource';
  readonly outcome = 'not-applied';
  readonly token: bigint;
  readonly highest: bigint;
  /** What tells holds of one token apart; 0 where nothing was said of it. */
  readonly section: number;
  readonly highestSection: number;

  constructor(
    token: bigint,
    highest: bigint,
    sections: { readonly section?: number; readonly highestSection?: number } = {},
  ) {
    const { section = 0, highestSection = 0 } = sections;
    const [stale, admitted] =
      token === highest ? [`${token}.${section}`, `${highest}.${highestSection}`] : [token, highest];
    super(`token ${stale} is stale: ${admitted} has been admitted`);
    this.token = token;
    this.highest = highest;
    this.section = section;
    this.highestSection = highestSection;
  }
}

/** The rows of docs/errors.md for these. */
export const lockErrorTable: readonly ErrorRow[] = [
  {
    name: 'LockTimeoutError',
    code: 'LOCK_TIMEOUT',
    scope: 'lock',
    outcome: 'not-applied',
    advice:
      'try later; the queue was left. `holder`, `since` and `waiting` say who had it, where that is known',
  },
  {
    name: 'LockUnreachableError',
    code: 'LOCK_UNREACHABLE',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'look at the servers',
  },
  {
    name: 'LockLostError',
    code: 'LOCK_LOST',
    scope: 'lock',
    outcome: 'unknown',
    advice: 'stop: another may hold it',
  },
  {
    name: 'LockRevokedError',
    code: 'LOCK_REVOKED',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'finish and release; it is held until then',
  },
  {
    name: 'LockReleasedError',
    code: 'LOCK_RELEASED',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'nothing; you released it',
  },
  {
    name: 'ContenderEvictedError',
    code: 'LOCK_CONTENDER_EVICTED',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'start again, if whoever removed it agrees',
  },
  {
    name: 'LockUpgradeError',
    code: 'LOCK_UPGRADE',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'let it go, and acquire to write',
  },
  {
    name: 'WrongKindError',
    code: 'LOCK_WRONG_KIND',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'use another name',
  },
  {
    name: 'ForeignNodeError',
    code: 'LOCK_FOREIGN_NODE',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'find out whose it is; remove it or use another name',
  },
  {
    name: 'NotHolderError',
    code: 'LOCK_NOT_HOLDER',
    scope: 'lock',
    outcome: 'not-applied',
    advice: 'look again who holds it',
  },
  {
    name: 'StaleTokenError',
    code: 'LOCK_STALE_TOKEN',
    scope: 'resource',
    outcome: 'not-applied',
    advice: 'stop: you have been overtaken',
  },
  {
    name: 'ForeignDataError',
    code: 'ZK_FOREIGN_DATA',
    scope: 'request',
    outcome: 'not-applied',
    advice:
      'find out which program writes to that node; use another path, or remove the node (if it was the floor of tokens, raise it again before anyone locks)',
  },
];
