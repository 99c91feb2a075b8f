import { CONTESTANTS, type Contestant } from './contestants.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';

/** A name on the command line that is none of those there are. */
export class UnknownNameError extends RangeError {
  override readonly name = 'UnknownNameError';
  readonly code = 'BENCH_UNKNOWN_NAME';

  constructor(
    readonly option: string,
    readonly given: string,
    readonly known: readonly string[],
  ) {
    super(`${option}: ${JSON.stringify(given)} given; known are ${known.join(', ')}`);
  }
}

/** What the command line asks for. */
export interface Choices {
  readonly quick: boolean;
  /** Measure nothing: put what was measured last into the documents. */
  readonly publish: boolean;
  readonly scenarios: readonly Scenario[];
  readonly contestants: readonly Contestant[];
}

const FLAGS = ['--quick', '--publish'];
const LISTS = ['--only', '--peers'];

/** @throws UnknownNameError for an option, a scenario or a peer that there is not. */
export function parseChoices(args: readonly string[]): Choices {
  const flags = new Set<string>();
  const lists = new Map<string, string[]>();
  for (let at = 0; at < args.length; at++) {
    const [option, attached] = args[at]!.split(/=(.*)/s) as [string, string?];
    if (LISTS.includes(option)) {
      const names = (attached ?? args[++at] ?? '').split(',').filter((name) => name !== '');
      lists.set(option, [...(lists.get(option) ?? []), ...names]);
    } else if (FLAGS.includes(option) && attached === undefined) flags.add(option);
    else throw new UnknownNameError('bench', args[at]!, [...FLAGS, ...LISTS]);
  }
  const quick = flags.has('--quick');
  return {
    quick,
    publish: flags.has('--publish'),
    scenarios:
      chosen('--only', SCENARIOS, lists.get('--only')) ??
      SCENARIOS.filter((scenario) => !(quick && scenario.kind === 'rate' && scenario.slow)),
    contestants: chosen('--peers', CONTESTANTS, lists.get('--peers')) ?? CONTESTANTS,
  };
}

/** In the order of the list, however they were given. Undefined if nothing was. */
function chosen<T extends { readonly id: string }>(
  option: string,
  from: readonly T[],
  ids: readonly string[] | undefined,
): T[] | undefined {
  if (ids === undefined) return undefined;
  const known = from.map(({ id }) => id);
  if (ids.length === 0) throw new UnknownNameError(option, '', known);
  for (const id of ids) if (!known.includes(id)) throw new UnknownNameError(option, id, known);
  return from.filter(({ id }) => ids.includes(id));
}
