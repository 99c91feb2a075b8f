import { getEventListeners } from 'node:events';
import { describe, expect } from 'vitest';
import type { Holdfast, LockLease } from '../../src/holdfast.ts';
import { DeadlineClock, TIMEOUT_MS } from '../support/deadline-clock.ts';
import { type LockBackend, type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { SteppingTransport } from '../support/stepping-transport.ts';
import { until } from '../support/until.ts';
import { turns } from '../support/witness.ts';

type Bounds = { readonly signal?: AbortSignal; readonly timeoutMs?: number };

interface Recipe {
  acquire(holdfast: Holdfast, bounds: Bounds): Promise<LockLease>;
  /** Stands in the way of it. */
  block(holder: Holdfast): Promise<LockLease>;
}

const recipes: Readonly<Record<string, Recipe>> = {
  mutex: {
    acquire: (holdfast, bounds) => holdfast.mutex('x').acquire(bounds),
    block: (holder) => holder.mutex('x').acquire(),
  },
  reader: {
    acquire: (holdfast, bounds) => holdfast.readWriteLock('x').read.acquire(bounds),
    block: (holder) => holder.readWriteLock('x').write.acquire(),
  },
  writer: {
    acquire: (holdfast, bounds) => holdfast.readWriteLock('x').write.acquire(bounds),
    block: (holder) => holder.readWriteLock('x').read.acquire(),
  },
  upgradable: {
    acquire: (holdfast, bounds) => holdfast.readWriteLock('x').upgradable.acquire(bounds),
    block: (holder) => holder.readWriteLock('x').upgradable.acquire(),
  },
  upgrade: {
    async acquire(holdfast, bounds) {
      await using upgradable = await holdfast.readWriteLock('x').upgradable.acquire();
      return await upgradable.upgrade(bounds);
    },
    block: (holder) => holder.readWriteLock('x').read.acquire(),
  },
  semaphore: {
    acquire: (holdfast, bounds) => holdfast.semaphore('x', { permits: 2 }).acquire({ ...bounds, permits: 2 }),
    block: (holder) => holder.semaphore('x', { permits: 2 }).acquire(),
  },
  'multi-lock': {
    acquire: (holdfast, bounds) => holdfast.multiLock(['x', 'y']).acquire(bounds),
    block: (holder) => holder.mutex('y').acquire(),
  },
  election: {
    acquire: (holdfast, bounds) => holdfast.election('x').campaign(bounds),
    block: (holder) => holder.election('x').campaign(),
  },
  'simple lock': {
    acquire: (holdfast, bounds) => holdfast.simpleLock('x').acquire(bounds),
    block: (holder) => holder.simpleLock('x').acquire(),
  },
};

const FULL = process.env['HOLDFAST_EVERY_REACTION'] !== undefined;
/**
 * After how many promise reactions to a step the wait is given up, too: no step sets off more than these one after
 * another. HOLDFAST_EVERY_REACTION=1 for all of them.
 */
const REACTIONS = FULL ? Array.from({ length: 25 }, (_, count) => count) : [0, 2, 5, 10];

/** How a wait is given up. */
type Way = 'abort' | 'timeout';

/** Acquires, and gives up at one moment; undefined if it was granted before that moment came. */
class Attempts {
  readonly #workspace: LockWorkspace;
  readonly #recipe: Recipe;
  readonly #way: Way;
  readonly #transport = new SteppingTransport();
  readonly #clock = new DeadlineClock();
  #holdfast!: Holdfast;
  #holder!: Holdfast;

  constructor(workspace: LockWorkspace, recipe: Recipe, way: Way) {
    this.#workspace = workspace;
    this.#recipe = recipe;
    this.#way = way;
  }

  async connect(): Promise<void> {
    const options = { clock: this.#clock, sessionTimeoutMs: 30_000 };
    this.#holder = await this.#workspace.holdfast(options);
    this.#holdfast = await this.#workspace.holdfast({ ...options, transport: this.#transport });
    // Folders are there, of the lock and of batons: every attempt takes the same steps.
    const [blocking, other] = [
      await this.#recipe.block(this.#holder),
      this.#recipe.acquire(this.#holdfast, {}),
    ];
    await this.#quiet();
    await blocking.release();
    await (await other).release();
    await this.#workspace.admin.ensurePath('/holdfast/batons');
  }

  /** Resolves with whether it was given up. */
  async giveUpAt(step: number, reactions: number, { blocked }: { blocked: boolean }): Promise<boolean> {
    const what = `${this.#way} at step ${step} and ${reactions} reactions, ${blocked ? 'blocked' : 'free'}`;
    await this.#quiet(); // What was given up before has left: whoever blocks now is first, and waits for nobody.
    const blocking = blocked ? await this.#recipe.block(this.#holder) : undefined;
    const controller = new AbortController();
    const reason = new Error('given up');
    let settled = false;
    let givenUp = false;
    const giveUp = async () => {
      for (let reaction = 0; reaction < reactions; reaction++) await undefined;
      if (settled) return;
      givenUp = true;
      if (this.#way === 'abort') controller.abort(reason);
      else this.#clock.pass();
    };
    this.#transport.watch((at) => {
      if (at === step - 1) void giveUp();
    });
    const bounds = this.#way === 'abort' ? { signal: controller.signal } : { timeoutMs: TIMEOUT_MS };
    const acquiring = this.#recipe.acquire(this.#holdfast, bounds);
    acquiring.then(
      () => {
        settled = true;
      },
      () => {
        settled = true;
      },
    );
    if (step === 0) void giveUp();
    if (blocking) {
      await this.#quiet();
      // Given up while it waited: nothing of it is left at the side of the one that still holds.
      if (settled && reactions === 0) await this.#onlyHolderLeft(what);
      blocking.assertHeld();
      await blocking.release();
    }
    const outcome = await acquiring.then(
      (lease) => ({ lease }),
      (error) => ({ error }),
    );
    if ('lease' in outcome) {
      outcome.lease.assertHeld();
      await outcome.lease.release();
    } else {
      expect(givenUp, `${what}: ${String(outcome.error)}`).toBe(true);
      if (this.#way === 'abort') expect(outcome.error, what).toBe(reason);
      else expect(outcome.error, what).toMatchObject({ code: 'LOCK_TIMEOUT' });
    }
    expect(getEventListeners(controller.signal, 'abort'), what).toHaveLength(0);
    expect(this.#clock.deadlineCount, what).toBe(0);
    return givenUp;
  }

  /** Nothing is on its way, and nothing follows from what has come: what goes on waits for an event, or has ended. */
  async #quiet(): Promise<void> {
    for (let quietTurns = 0; quietTurns < 3; quietTurns++) {
      await turns(1);
      if (!this.#transport.idle) quietTurns = 0;
    }
  }

  async #onlyHolderLeft(what: string): Promise<void> {
    await until(`no more than one node, ${what}`, async () => {
      return (await this.#workspace.livingNodes()).length === 1;
    });
    await until(`no watch, ${what}`, async () => (await this.#workspace.watchedPaths()).length === 0);
  }
}

/** Every step there is, found by going on until the lock is granted before the next one comes. */
async function sweep(
  attempts: Attempts,
  options: { blocked: boolean; reactions: readonly number[] },
): Promise<number> {
  for (let step = 0; ; step++) {
    let reached = false;
    for (const reactions of options.reactions) {
      reached = (await attempts.giveUpAt(step, reactions, options)) || reached;
    }
    if (!reached) return step;
  }
}

const STEPS_MIN = { free: 3, blocked: 6 };

describe('giving up at every step of the protocol leaves nothing, and the lock to the next', () => {
  for (const [name, recipe] of Object.entries(recipes)) {
    for (const way of ['abort', 'timeout'] as const) {
      // Of the two, only the reason differs: on ZooKeeper one will do.
      const backends: LockBackend[] = ['embedded server'];
      if (way === 'abort' || FULL) backends.push('ZooKeeper standalone');
      for (const backend of backends) {
        onEveryLockBackend(
          `${name}, ${way}`,
          async (workspace) => {
            const attempts = new Attempts(workspace, recipe, way);
            await attempts.connect();
            // Each reaction to a step is a step as well; once is enough, where it is quickest.
            const reactions = backend === 'embedded server' && way === 'abort' ? REACTIONS : [0];
            for (const blocked of [false, true]) {
              const steps = await sweep(attempts, { blocked, reactions });
              expect(steps).toBeGreaterThanOrEqual(blocked ? STEPS_MIN.blocked : STEPS_MIN.free);
            }
          },
          [backend],
        );
      }
    }
  }
});
