import type { Scenario } from '../../simulation/scenario/scenario.ts';
import { type Outcome, runScenario } from '../../simulation/world/run-scenario.ts';

/** Runs a scenario where no promise reaction is running, which it needs. */
export function outcomeOf(scenario: Scenario, tell?: (line: string) => void): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        resolve(runScenario(scenario, tell ? { tell } : {}));
      } catch (error) {
        reject(error);
      }
    });
  });
}
