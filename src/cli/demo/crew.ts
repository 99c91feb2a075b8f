import { systemClock } from '../../base/clock.ts';
import { Ledger } from './ledger.ts';
import { Member } from './member.ts';
import type { Stage } from './stage.ts';

/** The lock that everybody wants. */
export const LOCK_NAME = 'member-123';

/** Programs in processes of their own that want one lock, and what they write to under it. */
export class Crew implements AsyncDisposable {
  readonly members: readonly Member[];
  readonly ledger = new Ledger();
  /** What the servers granted. */
  sessionTimeoutMs = 0;
  readonly #stage: Stage;

  private constructor(stage: Stage, members: readonly Member[]) {
    this.#stage = stage;
    this.members = members;
  }

  static async start(stage: Stage, names: readonly string[], signal: AbortSignal): Promise<Crew> {
    const crew = new Crew(
      stage,
      names.map((name) => new Member(name, signal)),
    );
    try {
      const connected = await Promise.all(
        crew.members.map((member) => {
          crew.ledger.serve(member);
          const { servers, auth, root, batonFolder, sessionTimeoutMs } = stage.options;
          const options = { servers, auth, root, batonFolder, sessionTimeoutMs, app: member.name };
          // Undefined goes missing on the way, which is what is meant.
          member.tell({ kind: 'connect', lockName: LOCK_NAME, options: options as never });
          return member.next('connected');
        }),
      );
      crew.sessionTimeoutMs = connected[0]!.sessionTimeoutMs;
      return crew;
    } catch (error) {
      await crew[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** One after another, so that the order is known: the first holds, the others wait. */
  async lineUp(members: readonly Member[] = this.members): Promise<void> {
    for (const member of members) {
      const settled = Promise.race([member.next('held'), member.next('waiting')]);
      member.tell({ kind: 'acquire' });
      await settled;
    }
  }

  /** The queue as the server has it, the holder first. */
  async queue(): Promise<Member[]> {
    const { holders, queue } = await this.#stage.holdfast.inspect(LOCK_NAME);
    return [...holders, ...queue].flatMap(({ owner }) => {
      const member = this.members.find(({ name }) => name === owner.app);
      return member ? [member] : [];
    });
  }

  /** `[ana] ← ben ← cem`. */
  async picture(): Promise<string> {
    const [holder, ...waiting] = (await this.queue()).map(({ name }) => name);
    return holder === undefined ? 'nobody' : [`[${holder}]`, ...waiting].join(' ← ');
  }

  /** Does something to the holder, and waits until the next one holds. How long that took. */
  async handOver(act: (holder: Member) => void): Promise<{ holder: Member; next: Member; tookMs: number }> {
    const [holder, next] = await this.queue();
    if (!holder || !next) throw new Error('nobody waits');
    const held = next.next('held');
    const startedAtMs = systemClock.nowMs();
    act(holder);
    await held;
    return { holder, next, tookMs: systemClock.nowMs() - startedAtMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => member[Symbol.asyncDispose]()));
  }
}
