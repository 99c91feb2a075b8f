// The simulation as it was compiled into a folder, with its probes.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { planScenario } from '../scenario/plan-scenario.ts';
import type { Scenario } from '../scenario/scenario.ts';
import type { Outcome, runScenario } from '../world/run-scenario.ts';

export interface Engine {
  readonly planScenario: typeof planScenario;
  /** In a macrotask of its own. */
  run(scenario: Scenario, tell?: (line: string) => void): Promise<Outcome>;
  /** How often each probe was come by since it was last asked. */
  takeReached(): Record<string, number>;
}

declare global {
  var holdfastReached: ((name: string) => true) | undefined;
}

export async function loadEngine(folder: string): Promise<Engine> {
  let reached: Record<string, number> = {};
  globalThis.holdfastReached = (name) => {
    reached[name] = (reached[name] ?? 0) + 1;
    return true;
  };
  const load = (path: string) => import(pathToFileURL(join(folder, path)).href);
  const planning = (await load('simulation/scenario/plan-scenario.js')) as {
    planScenario: typeof planScenario;
  };
  const running = (await load('simulation/world/run-scenario.js')) as { runScenario: typeof runScenario };
  return {
    planScenario: planning.planScenario,
    run: (scenario, tell) =>
      new Promise((resolve, reject) => {
        setImmediate(() => {
          try {
            resolve(running.runScenario(scenario, tell ? { tell } : {}));
          } catch (error) {
            reject(error);
          }
        });
      }),
    takeReached() {
      const taken = reached;
      reached = {};
      return taken;
    },
  };
}
