import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ContenderInfo } from './inspection.ts';
import { ownerEncoder } from './owner.ts';
import { factsIn, type SemaphoreNode, semaphoreView, withFacts } from './semaphore-view.ts';

const describeOwner = ownerEncoder({ host: 'h', pid: 1, app: 'test' });

/** One task of a session, and how far it has come. */
interface Task {
  readonly session: bigint;
  readonly weight: number;
  turn: ContenderInfo | undefined;
  leases: readonly SemaphoreNode<ContenderInfo>[];
  granted: boolean;
  /** Its leases were written over, as `revoke` does. */
  asked: boolean;
}

/** A semaphore as its server has it, and who holds it: moved on by the steps of the recipe, one write at a time. */
class ModelSemaphore {
  readonly #permits: number;
  /** Whether the leases say what Holdfast's say; Curator's do not. */
  readonly #stating: boolean;
  readonly tasks: readonly Task[];
  readonly #turnstile: Task[] = [];
  readonly #leased: Task[] = [];
  #zxid = 0n;

  constructor(permits: number, tasks: readonly Pick<Task, 'session' | 'weight'>[], stating: boolean) {
    this.#permits = permits;
    this.#stating = stating;
    this.tasks = tasks.map(({ session, weight }) => ({
      session,
      weight: Math.min(weight, permits),
      turn: undefined,
      leases: [],
      granted: false,
      asked: false,
    }));
  }

  /** The next thing that this task does; `givesUp` if it stops instead. */
  step(task: Task, { givesUp, asked }: { givesUp: boolean; asked: boolean }): void {
    // Of one that has left the turnstile: until then the lease says which node there is its own.
    if (task.granted && !task.turn) task.asked ||= asked;
    if (task.granted) {
      if (task.turn) this.#leaveTurnstile(task);
      else this.#removeLeases(task);
    } else if (givesUp && task.turn) {
      if (task.leases.length > 0) this.#removeLeases(task);
      else this.#leaveTurnstile(task);
    } else if (!task.turn) {
      task.turn = this.#node(task, `turn-${this.#zxid}`);
      this.#turnstile.push(task);
    } else if (this.#turnstile[0] === task && task.leases.length === 0) {
      this.#makeLeases(task);
    }
    this.#grant();
  }

  get view() {
    // Somebody asks for the lock by writing over a lease: what it said is not there then.
    const leases = this.#leased.flatMap((task) =>
      task.asked ? task.leases.map(({ info }) => ({ info, facts: {} })) : task.leases,
    );
    const facts = this.#stating ? { permits: this.#permits } : {};
    const turnstile = this.#turnstile.map(({ turn }) => ({ info: turn!, facts }));
    return semaphoreView({ leases, turnstile, foreignCount: 0 });
  }

  get expected() {
    const holding = this.#leased.filter(({ granted }) => granted);
    return {
      holders: holding.flatMap(({ leases }) => leases.map(({ info }) => info)),
      queue: this.#turnstile.filter(({ granted }) => !granted).map(({ turn }) => turn!),
    };
  }

  #makeLeases(task: Task): void {
    const info = this.#node(task, '');
    const owner = describeOwner({ wallMs: 0 });
    const text = withFacts(owner, { permits: this.#permits, turnstile: task.turn!.id });
    const facts = this.#stating ? factsIn(Buffer.from(text)) : factsIn(Buffer.from('10.0.0.1'));
    task.leases = Array.from({ length: task.weight }, (_, index) => ({
      info: { ...info, id: `lease-${info.token}-${index}` },
      facts,
    }));
    this.#leased.push(task);
  }

  /** One that has made its leases is granted once they and all before them are no more than there are permits. */
  #grant(): void {
    let taken = 0;
    for (const task of this.#leased) {
      taken += task.weight;
      if (taken <= this.#permits) task.granted = true;
    }
  }

  #leaveTurnstile(task: Task): void {
    this.#turnstile.splice(this.#turnstile.indexOf(task), 1);
    task.turn = undefined;
  }

  #removeLeases(task: Task): void {
    this.#leased.splice(this.#leased.indexOf(task), 1);
    task.leases = [];
    task.granted = false;
    task.asked = false;
  }

  #node({ session }: Task, id: string): ContenderInfo {
    return { id, role: 'lease', token: ++this.#zxid, session, since: new Date(0), owner: {} };
  }
}

const histories = fc.record({
  permits: fc.integer({ min: 1, max: 4 }),
  tasks: fc.array(
    fc.record({ session: fc.constantFrom(1n, 2n, 3n), weight: fc.integer({ min: 1, max: 3 }) }),
    { minLength: 1, maxLength: 8 },
  ),
  steps: fc.array(fc.record({ task: fc.nat(), givesUp: fc.boolean(), asked: fc.boolean() }), {
    maxLength: 80,
  }),
});

describe('what is shown of a semaphore', () => {
  test('is who holds and who waits, after each step of tasks of several sessions', () => {
    fc.assert(
      fc.property(histories, ({ permits, tasks, steps }) => {
        const model = new ModelSemaphore(permits, tasks, true);
        for (const { task, givesUp, asked } of steps) {
          model.step(model.tasks[task % tasks.length]!, { givesUp: givesUp && task % 3 === 0, asked });
          expect(model.view).toEqual(model.expected);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('hides no more than one contender of Curator, whose leases say nothing of the semaphore', () => {
    fc.assert(
      fc.property(histories, ({ permits, tasks, steps }) => {
        const model = new ModelSemaphore(permits, tasks, false);
        for (const { task, givesUp, asked } of steps) {
          model.step(model.tasks[task % tasks.length]!, { givesUp: givesUp && task % 3 === 0, asked });
          const { holders } = model.view;
          const expected = model.expected.holders;
          for (const holder of holders) expect(expected).toContain(holder);
          const hidden = expected.filter((holder) => !holders.includes(holder));
          expect(new Set(hidden.map(({ token }) => token)).size).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test.each([
    '',
    'null',
    '7',
    '"text"',
    '{"permits":0}',
    '{"permits":"3"}',
    '{"permits":1.5}',
    '{"turnstile":7}',
    '{',
  ])('takes nothing from data that is no description: %j', (text) => {
    expect(factsIn(Buffer.from(text))).toEqual({});
    expect(factsIn(null)).toEqual({});
  });
});
