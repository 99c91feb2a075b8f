import type { Holdfast } from '../../src/locks/holdfast.ts';
import { ZkError } from '../../src/protocol/errors.ts';
import type { Scenario } from '../scenario/scenario.ts';
import type { HeldLease } from './hold-monitor.ts';
import { describe, type World } from './world.ts';

/** What locks protect is here, one node for each. */
export const REGISTER_FOLDER = '/registers';

/** Whether anybody reads and writes what locks protect. */
export function usesRegisters({ clients }: Scenario): boolean {
  return clients.some(({ tasks }) => tasks.flat().some((step) => step.kind === 'lock' && step.counts));
}

/** What holders do to what their lock protects: a plain read and a plain write, as programs do that trust the lock. */
export class Registers {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async use(holdfast: Holdfast, held: HeldLease): Promise<void> {
    for (const lock of held.locks) {
      const value = await this.#read(holdfast, held, lock);
      if (value === undefined || !this.#keepsOthersOut(held, lock)) continue;
      await this.#write(holdfast, held, {
        lock,
        value: `${Number.parseInt(value || '0', 10) + 1} by ${held.attempt}`,
      });
    }
  }

  /** Undefined if it does not hold any more when the answer comes. */
  async #read(holdfast: Holdfast, { lease, attempt }: HeldLease, lock: string): Promise<string | undefined> {
    if (lease.remainingMs() <= 0) return undefined;
    try {
      const { data } = await holdfast.zk.get(`${REGISTER_FOLDER}/${lock}`);
      if (lease.remainingMs() <= 0) return undefined;
      const value = data?.toString('latin1') ?? '';
      this.#world.record({ kind: 'register-read', atMs: this.#world.nowMs, attempt, lock, value });
      return value;
    } catch (error) {
      return this.#failed(attempt, error);
    }
  }

  async #write(
    holdfast: Holdfast,
    { attempt }: HeldLease,
    write: { readonly lock: string; readonly value: string },
  ): Promise<void> {
    const world = this.#world;
    world.record({ kind: 'register-write-began', atMs: world.nowMs, attempt, ...write });
    const ended = (outcome: 'applied' | 'not-applied' | 'unknown') =>
      world.record({ kind: 'register-write-ended', atMs: world.nowMs, attempt, ...write, outcome });
    try {
      await holdfast.zk.set(`${REGISTER_FOLDER}/${write.lock}`, write.value);
      ended('applied');
    } catch (error) {
      this.#failed(attempt, error);
      ended(error instanceof ZkError ? error.outcome : 'unknown');
    }
  }

  #failed(attempt: string, error: unknown): undefined {
    if (!(error instanceof ZkError)) this.#world.fail('error', `${attempt}: ${describe(error)}`);
  }

  /** A reader does not, nor one of several who have permits. */
  #keepsOthersOut({ mode, weight }: HeldLease, lock: string): boolean {
    if (mode !== 'lease') return mode !== 'read';
    return weight === this.#world.scenario.locks.find(({ name }) => name === lock)!.permits;
  }
}
