import { utf8Bytes } from '../../src/base/utf8-bytes.ts';
import { NAME_BYTES_MAX } from '../../src/locks/lock-name.ts';
import type { Dice } from './dice.ts';
import type { Fault, Scenario, Step } from './scenario.ts';

/** One, two and three bytes in UTF-8; what takes four, ZooKeeper allows in no path. */
const LETTERS = ['n', 'é', '鎖'] as const;

/** The same scenario with names of other lengths, up to the longest there may be: nothing else may change by that. */
export function withLongNames(dice: Dice, scenario: Scenario): Scenario {
  const names = new Map(scenario.locks.map(({ name }) => [name, longName(dice, name)]));
  const renamed = (name: string) => names.get(name)!;
  const ofStep = (step: Step): Step => {
    if (step.kind === 'lock') return { ...step, locks: step.locks.map(renamed) };
    return step.kind === 'close' ? step : { ...step, lock: renamed(step.lock) };
  };
  const ofFault = (fault: Fault): Fault =>
    'lock' in fault ? { ...fault, lock: renamed(fault.lock) } : fault;
  return {
    ...scenario,
    locks: scenario.locks.map((lock) => ({ ...lock, name: renamed(lock.name) })),
    clients: scenario.clients.map((client) => ({
      ...client,
      tasks: client.tasks.map((task) => task.map(ofStep)),
    })),
    faults: scenario.faults.map(ofFault),
  };
}

function longName(dice: Dice, name: string): string {
  const letter = dice.pick(LETTERS);
  const bytes = dice.chance(0.5) ? NAME_BYTES_MAX : dice.whole(utf8Bytes(name), NAME_BYTES_MAX);
  const long = name + letter.repeat(Math.floor((bytes - utf8Bytes(name)) / utf8Bytes(letter)));
  return long + 'n'.repeat(bytes - utf8Bytes(long)); // To the very byte.
}
