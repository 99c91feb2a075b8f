import type { OptionNames } from '../base/option-names.ts';
import { type CallOptions, callOptionNames } from '../client/call-options.ts';
import { ops } from '../client/operations-of-multi.ts';
import { isServerError, MultiError } from '../protocol/errors.ts';
import { REVOKE_MARK } from '../queue/own-node.ts';
import { AuditLog, type AuditRecord } from './audit-log.ts';
import type { ContenderInfo, Inspection, LockInfo, LookBounds } from './inspection.ts';
import type { LockContext } from './lock-context.ts';
import { NotHolderError, WrongKindError } from './lock-errors.ts';

/** What comes from outside to whoever holds a lock: a request to let go, or the end. */
export class Intervention {
  readonly #context: LockContext;
  readonly #inspection: Inspection;
  readonly #audit: AuditLog;

  constructor(context: LockContext, inspection: Inspection, auditFolder: string) {
    this.#context = context;
    this.#inspection = inspection;
    this.#audit = new AuditLog(context, auditFolder);
  }

  /** Asks holders to let go. How many were asked. */
  async revoke(name: string, { holder, reason, by }: RevokeOptions, bounds: LookBounds): Promise<number> {
    const lock = await this.#inspection.inspect(name, bounds);
    if (lock.kind === 'election') {
      // A LeaderLatch that waits for this node spends its only watch on the change, and does not look again.
      throw new WrongKindError(name, 'a leader cannot be asked to let go');
    }
    const asked = lock.holders.filter(({ id }) => holder === undefined || id === holder);
    if (reason !== undefined && asked.length > 0) await this.#audit.prepare(name, bounds);
    const outcomes = await Promise.all(
      asked.map(async (contender) => {
        const path = this.#pathOf(lock, contender);
        try {
          if (reason === undefined) {
            await this.#context.zk.set(path, REVOKE_MARK, bounds);
          } else {
            const { write } = this.#audit.entry({ action: 'asked', name, contender, reason, by });
            await this.#context.zk.multi([ops.set(path, REVOKE_MARK), write], bounds);
          }
          return true;
        } catch (error) {
          if (isGone(error)) return false; // It has just let go.
          throw error;
        }
      }),
    );
    if (reason !== undefined) await this.#audit.trim(name, bounds);
    return outcomes.filter(Boolean).length;
  }

  /** Removes exactly that holder, and leaves a record of it: both in one transaction, or neither. */
  async forceRelease(
    name: string,
    { holder, reason, by }: ForceReleaseOptions,
    bounds: LookBounds,
  ): Promise<AuditRecord> {
    const lock = await this.#inspection.inspect(name, bounds);
    if (lock.kind === 'simple') {
      // All its holders' nodes have one name, and no write to ZooKeeper can be tied to one of them: it could hit the next.
      throw new WrongKindError(name, 'the holder of a simple lock can be asked to let go, not be removed');
    }
    const found = lock.holders.find(({ id }) => id === holder);
    if (!found) throw new NotHolderError(name, holder, lock);
    const contender = await this.#recognised(name, found, bounds);
    await this.#audit.prepare(name, bounds);
    const { record, write } = this.#audit.entry({ action: 'released', name, contender, reason, by });
    try {
      await this.#context.zk.multi([ops.delete(this.#pathOf(lock, contender)), write], bounds);
    } catch (error) {
      if (isGone(error)) {
        throw new NotHolderError(name, holder, await this.#inspection.inspect(name, bounds), {
          cause: error,
        });
      }
      throw error;
    }
    await this.#audit.trim(name, bounds);
    return record;
  }

  /** What was done to a lock by such means, the oldest first. */
  records(name: string, bounds: LookBounds): Promise<AuditRecord[]> {
    return this.#audit.read(name, bounds);
  }

  /** The request to let go overwrote what the holder said of itself; if it does not listen, only the record knows. */
  async #recognised(name: string, contender: ContenderInfo, bounds: LookBounds): Promise<ContenderInfo> {
    if (contender.owner.text !== REVOKE_MARK) return contender;
    const records = await this.#audit.read(name, bounds);
    const asked = records.find(({ holder }) => holder === contender.id);
    return asked ? { ...contender, owner: asked.owner } : contender;
  }

  #pathOf({ name, kind }: LockInfo, { id }: ContenderInfo): string {
    const folder = `${this.#context.root}/${name}`;
    if (kind === 'simple') return folder;
    return kind === 'semaphore' ? `${folder}/leases/${id}` : `${folder}/${id}`;
  }
}

/** The holder's node, which comes first in each transaction, is no longer there. */
function isGone(error: unknown): boolean {
  return isServerError(error, 'no-node') && !(error instanceof MultiError && error.index > 0);
}

/** Who is to be asked to let go, and what is to be written down about it. */
export interface RevokeOptions extends CallOptions {
  /** The id of one holder, as `inspect` shows it; all of them if left out. */
  readonly holder?: string;
  /** Why. With a reason, a record is left beside the request. */
  readonly reason?: string;
  /** Who asks; the user and the machine if left out. */
  readonly by?: string;
}

/** Who is to be removed, why, and by whom. */
export interface ForceReleaseOptions extends CallOptions {
  /** The exact id of the holder, as `inspect` shows it: nobody else is removed by mistake. */
  readonly holder: string;
  readonly reason: string;
  /** Who does it; the user and the machine if left out. */
  readonly by?: string;
}

/** What each of them may be told. */
export const revokeNames: OptionNames<RevokeOptions> = {
  ...callOptionNames,
  ...{ holder: true, reason: true, by: true },
};
export const forceReleaseNames: OptionNames<ForceReleaseOptions> = revokeNames;
