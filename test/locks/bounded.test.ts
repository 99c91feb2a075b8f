import { describe, expect } from 'vitest';
import type { Holdfast, LockLease } from '../../src/holdfast.ts';
import { DeadlineClock, TIMEOUT_MS } from '../support/deadline-clock.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { SteppingTransport } from '../support/stepping-transport.ts';
import { turns } from '../support/witness.ts';

type Bounds = { readonly signal?: AbortSignal; readonly timeoutMs?: number };

interface Recipe {
  readonly bySignalOnly?: true;
  /** Made ready first, where it is of a lease that is held. */
  base?(holdfast: Holdfast): Promise<LockLease>;
  take(holdfast: Holdfast, bounds: Bounds, base: LockLease | undefined): Promise<LockLease | null>;
  /** Stands in the way of it, where that can be done without waiting. */
  rival(holder: Holdfast): Promise<LockLease | null>;
}

const recipes: Readonly<Record<string, Recipe>> = {
  mutex: {
    take: (holdfast, bounds) => holdfast.mutex('x').tryAcquire(bounds),
    rival: (holder) => holder.mutex('x').tryAcquire(),
  },
  'attempt on a mutex': {
    bySignalOnly: true, // With a time it waits, as `acquire`.
    take: async (holdfast, bounds) => {
      const attempt = await holdfast.mutex('x').attempt(bounds);
      return attempt.ok ? attempt.lease : null;
    },
    rival: (holder) => holder.mutex('x').tryAcquire(),
  },
  'mutex with handOff': {
    take: (holdfast, bounds) => holdfast.mutex('x', { handOff: true }).tryAcquire(bounds),
    rival: (holder) => holder.mutex('x', { handOff: true }).tryAcquire(),
  },
  reader: {
    take: (holdfast, bounds) => holdfast.readWriteLock('x').read.tryAcquire(bounds),
    rival: (holder) => holder.readWriteLock('x').write.tryAcquire(),
  },
  writer: {
    take: (holdfast, bounds) => holdfast.readWriteLock('x').write.tryAcquire(bounds),
    rival: (holder) => holder.readWriteLock('x').read.tryAcquire(),
  },
  upgradable: {
    take: (holdfast, bounds) => holdfast.readWriteLock('x').upgradable.tryAcquire(bounds),
    rival: (holder) => holder.readWriteLock('x').upgradable.tryAcquire(),
  },
  'upgrade that does not wait': {
    base: (holdfast) => holdfast.readWriteLock('x').upgradable.acquire(),
    take: (holdfast, bounds, within) =>
      holdfast.readWriteLock('x').write.tryAcquire({ ...bounds, within: within! }),
    rival: (holder) => holder.readWriteLock('x').read.tryAcquire(),
  },
  upgrade: {
    base: (holdfast) => holdfast.readWriteLock('x').upgradable.acquire(),
    take: (holdfast, bounds, within) =>
      holdfast.readWriteLock('x').write.acquire({ ...bounds, within: within! }),
    rival: (holder) => holder.readWriteLock('x').read.tryAcquire(),
  },
  'reader within a writer': {
    base: (holdfast) => holdfast.readWriteLock('x').write.acquire(),
    take: (holdfast, bounds, within) =>
      holdfast.readWriteLock('x').read.acquire({ ...bounds, within: within! }),
    rival: async () => null,
  },
  semaphore: {
    take: (holdfast, bounds) => holdfast.semaphore('x', { permits: 2 }).tryAcquire({ ...bounds, permits: 2 }),
    rival: (holder) => holder.semaphore('x', { permits: 2 }).tryAcquire(),
  },
  'multi-lock': {
    take: (holdfast, bounds) => holdfast.multiLock(['x', 'y']).tryAcquire(bounds),
    rival: (holder) => holder.mutex('y').tryAcquire(),
  },
  election: {
    take: (holdfast, bounds) => holdfast.election('x').tryAcquire(bounds),
    rival: (holder) => holder.election('x').tryAcquire(),
  },
  'simple lock': {
    take: (holdfast, bounds) => holdfast.simpleLock('x').tryAcquire(bounds),
    rival: (holder) => holder.simpleLock('x').tryAcquire(),
  },
};

/** More than any of them takes. */
const STEPS_MAX = 40;

/** One recipe, tried while its line goes dead at one moment, and somebody else comes at another. */
class Trials {
  readonly #workspace: LockWorkspace;
  readonly #name: string;
  readonly #recipe: Recipe;
  readonly #transport = new SteppingTransport();
  readonly #clock = new DeadlineClock();
  #holdfast!: Holdfast;
  #rival!: Holdfast;

  constructor(workspace: LockWorkspace, name: string, recipe: Recipe) {
    this.#workspace = workspace;
    this.#name = name;
    this.#recipe = recipe;
  }

  async connect(): Promise<void> {
    const root = `/locks/${this.#name.replaceAll(' ', '-')}`;
    const options = { clock: this.#clock, sessionTimeoutMs: 30_000, root };
    this.#rival = await this.#workspace.holdfast(options);
    this.#holdfast = await this.#workspace.holdfast({ ...options, transport: this.#transport });
    await this.#workspace.admin.ensurePath('/holdfast/batons');
    for (const holdfast of [this.#holdfast, this.#rival]) {
      await (await this.#recipe.rival(holdfast))?.release(); // Folders are there.
    }
  }

  /** Resolves with whether the line went dead before it had settled. */
  async run(rivalStep: number, silentStep: number): Promise<boolean> {
    const what = `${this.#name}: a rival at step ${rivalStep}, silence at step ${silentStep}`;
    const base = await this.#recipe.base?.(this.#holdfast);
    await this.#quiet();
    let rivalDue = rivalStep === 0;
    this.#transport.watch((at) => {
      if (at === rivalStep - 1) rivalDue = true;
      if (at === rivalStep - 1 || at === silentStep - 1) this.#transport.silence();
    });
    const controller = new AbortController();
    const reason = new Error('given up');
    const byAbort = this.#recipe.bySignalOnly ?? silentStep % 2 === 0;
    const bounds = byAbort ? { signal: controller.signal } : { timeoutMs: TIMEOUT_MS };
    let settled = false;
    let rival: LockLease | null = null;
    if (rivalDue) rival = await this.#recipe.rival(this.#rival);
    const taking = this.#recipe.take(this.#holdfast, bounds, base).finally(() => {
      settled = true;
    });
    taking.catch(() => {});
    if (rivalStep > 0) {
      await this.#until(() => settled || rivalDue);
      if (rivalDue) rival = await this.#recipe.rival(this.#rival);
      if (silentStep > rivalStep) this.#transport.speak();
    }
    await this.#until(() => settled || this.#transport.isSilent || this.#isStill);
    const wasSettled = settled;
    if (!wasSettled) {
      this.#transport.silence(); // One that waits for others, too.
      if (byAbort) controller.abort(reason);
      else this.#clock.pass();
      await turns(2);
      expect(settled, `${what}: it has not settled at its bound`).toBe(true);
    }
    const outcome = await taking.then(
      (lease) => ({ lease }),
      (error) => ({ error }),
    );
    if (!wasSettled && 'error' in outcome) {
      if (byAbort) expect(outcome.error, what).toBe(reason);
      else expect(outcome.error, what).toMatchObject({ code: 'LOCK_TIMEOUT' });
    }
    this.#transport.watch(() => {});
    this.#transport.speak();
    if ('lease' in outcome) await outcome.lease?.release();
    await rival?.release();
    await base?.release();
    await this.#quiet();
    return !wasSettled;
  }

  #stillTurns = 0;

  /** Nothing is on its way for three turns: it waits for others. */
  get #isStill(): boolean {
    this.#stillTurns = this.#transport.idle ? this.#stillTurns + 1 : 0;
    return this.#stillTurns > 5;
  }

  async #until(condition: () => boolean): Promise<void> {
    this.#stillTurns = 0;
    while (!condition()) await turns(1);
  }

  async #quiet(): Promise<void> {
    for (let quietTurns = 0; quietTurns < 3; quietTurns++) {
      await turns(1);
      if (!this.#transport.idle) quietTurns = 0;
    }
  }
}

// One test for all: what takes time is to see that nothing is left.
describe('a call settles at its bound, whatever it is doing, while its clean-up goes on', () => {
  onEveryLockBackend(
    Object.keys(recipes).join(', '),
    async (workspace) => {
      for (const [name, recipe] of Object.entries(recipes)) {
        const trials = new Trials(workspace, name, recipe);
        await trials.connect();
        let deadCount = 0;
        for (let rivalStep = 0; rivalStep <= STEPS_MAX; rivalStep++) {
          let silentStep = Math.max(1, rivalStep);
          while (silentStep <= STEPS_MAX && (await trials.run(rivalStep, silentStep))) silentStep++;
          deadCount += silentStep - Math.max(1, rivalStep);
          if (rivalStep > 0 && silentStep === rivalStep) break; // It was over before the rival came.
        }
        expect(deadCount, name).toBeGreaterThanOrEqual(2);
      }
    },
    ['embedded server'],
  );
});
