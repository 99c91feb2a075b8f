import { Fence } from '../../locks/fence.ts';
import { StaleTokenError } from '../../locks/lock-errors.ts';
import type { Member } from './member.ts';

/** What the programs write to, under the lock: a resource that checks tokens. */
export class Ledger {
  readonly #fence = new Fence();
  readonly #refusals: { readonly member: Member; readonly error: StaleTokenError }[] = [];
  #writeCount = 0;

  get writeCount(): number {
    return this.#writeCount;
  }

  /** Takes this member's writes from now on. */
  serve(member: Member): void {
    member.on((message) => {
      if (message.kind !== 'write') return;
      try {
        this.#fence.admit(BigInt(message.token));
        this.#writeCount++;
      } catch (error) {
        if (!(error instanceof StaleTokenError)) throw error;
        this.#refusals.push({ member, error });
        member.tell({ kind: 'refused' });
      }
    });
  }

  /** The first write of this member that was refused. */
  refusalOf(member: Member): StaleTokenError | undefined {
    return this.#refusals.find((refusal) => refusal.member === member)?.error;
  }
}
