import type { EntryRole, LockQueue } from '../queue/lock-queue.ts';
import { type Contest, contend, contendIfFree } from './contention.ts';
import type { Grant } from './grant.ts';
import { type AcquireOptions, Lock } from './lock.ts';
import type { LockContext } from './lock-context.ts';
import { lockDelayOf } from './lock-delay.ts';
import type { TurnRule } from './turn.ts';

/** A lock that is one place in one queue. What tells them apart is the role and the rule. */
export abstract class QueueLock<Options extends AcquireOptions = AcquireOptions> extends Lock<Options> {
  protected readonly queue: LockQueue;
  readonly #role: EntryRole;
  readonly #rule: TurnRule;
  readonly #seen = { others: false };

  constructor(
    context: LockContext,
    name: string,
    facts: { readonly queue: LockQueue; readonly role: EntryRole; readonly rule: TurnRule },
  ) {
    super(context, name);
    this.queue = facts.queue;
    this.#role = facts.role;
    this.#rule = facts.rule;
  }

  protected contend(options: Options, giveUp: AbortSignal | undefined): Promise<Grant> {
    return contend(this.contest(options, giveUp));
  }

  protected tryContend(options: Options, giveUp: AbortSignal | undefined): Promise<Grant | undefined> {
    return contendIfFree(this.contest(options, giveUp));
  }

  /** @internal */
  protected contest(options: Options, giveUp: AbortSignal | undefined): Contest {
    return {
      lockName: this.name,
      queue: this.queue,
      role: this.#role,
      rule: this.#rule,
      data: this.describe(options),
      signal: giveUp,
      seen: this.#seen,
      onWait: this.tellOfWaiting(options),
      lockDelay: lockDelayOf(this.context),
      trace: options.trace,
    };
  }
}
