// A process that searches for a planted bug: seed after seed, until one shows it.
import { type Engine, loadEngine } from '../runner/engine.ts';

/** Where the mutant was compiled to, and where the code as it is. */
export interface Hunt {
  readonly mutantFolder: string;
  readonly cleanFolder: string;
  readonly plan: object;
  readonly seedsMax: number;
}

/** What came of it: nothing, if no seed showed the bug. */
export interface Catch {
  readonly seed?: number;
  readonly property?: string;
  /** What the code as it is does with that seed, if that is wrong too: then the bug was not what was found. */
  readonly cleanProperty?: string;
}

const engines = new Map<string, Engine>();
Error.stackTraceLimit = 0;
process.on('message', (hunt: Hunt) => void search(hunt));
process.send!('ready');

async function search({ mutantFolder, cleanFolder, plan, seedsMax }: Hunt): Promise<void> {
  const mutant = await loadEngine(mutantFolder);
  for (let seed = 1; seed <= seedsMax; seed++) {
    const { violation } = await mutant.run(mutant.planScenario(seed, plan));
    if (!violation) continue;
    const clean = await cleanEngine(cleanFolder);
    const { violation: wrong } = await clean.run(clean.planScenario(seed, plan));
    const found: Catch = {
      seed,
      property: violation.property,
      ...(wrong && { cleanProperty: wrong.property }),
    };
    process.send!(found);
    return;
  }
  process.send!({} satisfies Catch);
}

async function cleanEngine(folder: string): Promise<Engine> {
  const engine = engines.get(folder) ?? (await loadEngine(folder));
  engines.set(folder, engine);
  return engine;
}
