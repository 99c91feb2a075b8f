import { checkHistory } from '../checker/checker.ts';
import type { History } from '../checker/history.ts';
import {
  type LockStep,
  type PlannedLock,
  type Scenario,
  type Step,
  UNSAFE_MS,
} from '../scenario/scenario.ts';
import { FaultInjector } from './fault-injector.ts';
import { withoutOutsideWorld } from './forbidden-globals.ts';
import { HoldMonitor } from './hold-monitor.ts';
import { Ledger } from './ledger.ts';
import { usesRegisters } from './registers.ts';
import { Steps } from './steps.ts';
import { Story } from './story.ts';
import { describe, type SimulatedClient, type Violation, World } from './world.ts';

/** What a run came to. */
export interface Outcome {
  /** The same for two runs in which the same things happened. */
  readonly digest: string;
  readonly violation: Violation | undefined;
  readonly history: History;
  readonly stepCount: number;
  readonly grantCount: number;
  readonly virtualMs: number;
}

/** A world in which this much happens is going round in circles. */
const STEPS_MAX = 200_000;
/**
 * After all is healed everyone must have got on by then, and after that nothing may be left. What a single attempt may
 * take is the checker's to say (L4); this is for the longest plan there is, with answers that take a tenth of a second.
 */
const LIVELY_MS = 120_000;
const QUIET_MS = 15_000;
const SETTING_UP_MS = 200;

/**
 * Runs a scenario: first a time in which things go wrong and nothing unsafe may happen, then one in which all is well
 * and everybody must get on, and nothing may be left in the end. Synchronous: call it from a macrotask, since it lets
 * promise reactions run itself.
 */
export function runScenario(
  scenario: Scenario,
  options: { readonly tell?: (line: string) => void } = {},
): Outcome {
  return withoutOutsideWorld(() => new Run(scenario, new Story(options.tell)).run());
}

class Run {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #monitor: HoldMonitor;
  readonly #steps: Steps;
  readonly #faults: FaultInjector;
  /** How much each client has still to do. */
  readonly #busyCounts = new Map<SimulatedClient, number>();

  constructor(scenario: Scenario, story: Story) {
    this.#world = new World(scenario, story);
    story.nowMs = () => this.#world.nowMs;
    this.#monitor = new HoldMonitor(this.#world);
    this.#ledger = new Ledger(this.#world, (lock, token) => this.#monitor.pathsOf(lock, token));
    this.#steps = new Steps(this.#world, this.#monitor);
    this.#faults = new FaultInjector(this.#world, this.#monitor);
    this.#world.onTransaction = (transaction) => this.#ledger.transacted(transaction);
    this.#world.onRecovered = (core) => this.#ledger.recovered(core);
  }

  run(): Outcome {
    const world = this.#world;
    const onRejection = (reason: unknown) => {
      world.fail('L14', `a rejection that nobody handles: ${describe(reason)}`);
    };
    process.on('unhandledRejection', onRejection);
    try {
      for (const phase of [
        this.#begin,
        this.#suffer,
        this.#recover,
        this.#getOn,
        this.#comeToRest,
        this.#leave,
      ]) {
        if (!world.violation) phase.call(this);
      }
      world.scheduler.settle();
      if (!world.violation) this.#judge();
    } finally {
      process.off('unhandledRejection', onRejection);
    }
    return {
      digest: world.story.digest(),
      violation: world.violation,
      history: world.history,
      stepCount: world.scheduler.stepCount,
      grantCount: world.history.filter(({ kind }) => kind === 'granted').length,
      virtualMs: world.nowMs,
    };
  }

  /** What only shows when all is known: order, tokens, who was passed over. */
  #judge(): void {
    const [first] = checkHistory(this.#world.history).violations;
    if (first) this.#world.violation = first;
  }

  #begin(): void {
    const world = this.#world;
    for (const { name, recipe, permits } of world.scenario.locks) {
      world.record({ kind: 'lock', atMs: 0, lock: name, recipe, ...(permits !== undefined && { permits }) });
    }
    const starting = world.startServer();
    this.#goOn(LIVELY_MS, () => world.server !== undefined);
    starting.catch((error) => world.fail('S2', describe(error)));
    if (!world.server) return world.fail('S2', 'the server does not start');
    this.#ledger.prepare(world.server.core);
    this.#goOn(SETTING_UP_MS); // On disk before anything goes wrong.
    this.#faults.plan(world.scenario.faults);
    for (const client of world.clients) this.#busy(client, this.#live(client));
  }

  async #live(client: SimulatedClient): Promise<void> {
    while (!client.holdfast) await this.#world.connect(client).catch(() => {});
    for (const task of client.plan.tasks) this.#busy(client, this.#perform(client, task));
  }

  async #perform(client: SimulatedClient, task: readonly Step[]): Promise<void> {
    for (const step of task) await this.#steps.run(client, step);
  }

  #busy(client: SimulatedClient, doing: Promise<void>): void {
    const count = (change: number) =>
      this.#busyCounts.set(client, (this.#busyCounts.get(client) ?? 0) + change);
    count(1);
    doing.then(
      () => count(-1),
      (error) => this.#world.fail('error', describe(error)),
    );
  }

  get #survivors(): readonly SimulatedClient[] {
    return this.#world.clients.filter(({ process }) => process.state !== 'dead');
  }

  get #isIdle(): boolean {
    return this.#survivors.every((client) => (this.#busyCounts.get(client) ?? 0) === 0);
  }

  /** Lets things happen until then, or until it is done. */
  #goOn(forMs: number, done: () => boolean = () => false): void {
    const world = this.#world;
    const untilMs = world.nowMs + forMs;
    world.scheduler.settle();
    while (!world.violation && !done() && world.step(untilMs)) {
      this.#monitor.check();
      if (world.scheduler.stepCount > STEPS_MAX) world.fail('L14', 'it goes round in circles');
    }
  }

  /** Things go wrong, for as long as anyone does anything. */
  #suffer(): void {
    this.#goOn(UNSAFE_MS - this.#world.nowMs, () => this.#isIdle);
  }

  /** All is well again: whoever has something to do can do it. */
  #recover(): void {
    const world = this.#world;
    this.#faults.heal();
    world.record({ kind: 'healed', atMs: world.nowMs });
    this.#goOn(LIVELY_MS, () => this.#isIdle && world.server !== undefined);
    if (!world.server) return world.fail('S2', 'the server does not start again');
    this.#checkIdle();
  }

  /** Everyone takes every lock once more. */
  #getOn(): void {
    this.#monitor.healed = true;
    const counts = usesRegisters(this.#world.scenario);
    for (const client of this.#survivors) {
      for (const lock of this.#world.scenario.locks) {
        // Tasks that share a node are several, for long enough that others must come in between.
        const tasks = lock.sharing ? Array<number>(8).fill(200) : [5];
        for (const holdMs of tasks)
          this.#busy(client, this.#steps.run(client, lastStep(lock, holdMs, counts)));
      }
    }
    this.#goOn(LIVELY_MS, () => this.#isIdle);
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#world.violation || this.#isIdle) return;
    const underway = [...this.#steps.underway.values()].join('; ');
    const { nodes } = this.#ledger.remains();
    this.#world.fail(
      'L4',
      `still under way: ${underway}; in the tree: ${nodes.map(({ path }) => path).join(', ')}`,
    );
  }

  #comeToRest(): void {
    const world = this.#world;
    let remains = this.#ledger.remains();
    const isClean = () => {
      remains = this.#ledger.remains();
      return remains.nodes.length === 0 && remains.others.length === 0;
    };
    this.#goOn(QUIET_MS, isClean);
    world.record({ kind: 'remains', atMs: world.nowMs, ...remains });
    if (world.violation || isClean()) return;
    world.fail(
      'L5',
      `left behind: ${[...remains.nodes.map(({ path }) => path), ...remains.others].join(', ')}`,
    );
  }

  #leave(): void {
    const world = this.#world;
    const { core } = world.server!;
    for (const { holdfast } of this.#survivors) {
      holdfast?.close().catch((error) => world.fail('L14', `close rejected: ${describe(error)}`));
    }
    this.#goOn(
      QUIET_MS,
      () => core.sessions.count === 0 && this.#survivors.every(({ process }) => process.alarmCount === 0),
    );
    if (world.violation) return;
    if (core.sessions.count > 0) world.fail('L14', `${core.sessions.count} sessions are left`);
    for (const { process, plan } of this.#survivors) {
      if (process.alarmCount > 0) world.fail('L14', `${plan.name} left ${process.alarmCount} timers`);
    }
  }
}

/** Taken as in good times: it must be granted. */
function lastStep({ name, recipe, permits }: PlannedLock, holdMs: number, counts: boolean): LockStep {
  const modes = {
    mutex: 'exclusive',
    simple: 'exclusive',
    'read-write': 'write',
    semaphore: 'lease',
    election: 'leader',
  } as const;
  return {
    ...{ kind: 'lock', afterMs: 0, locks: [name], how: 'acquire', mode: modes[recipe], holdMs },
    ...(permits !== undefined && { weight: permits }),
    ...{ act: 'nothing', counts, release: 'once', listens: false },
  };
}
