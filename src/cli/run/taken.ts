import { orAbort } from '../../base/abort.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { ContenderInfo } from '../../locks/inspection.ts';
import { ownerText } from '../owner-text.ts';

/** Nobody waits for long to be told why they do not wait. */
const LOOK_MS_MAX = 1_000;

/** Why a lock was not granted: as text behind a colon, and as fields of JSON. */
export interface Taken {
  readonly text: string;
  readonly json: {
    readonly holder?: string;
    readonly since?: string;
    readonly holders?: number;
    readonly waiting?: number;
  };
}

const UNKNOWN: Taken = { text: '', json: {} };

/** By which holder these locks are held, since when, and how many wait; nothing where the servers do not say in time. */
export async function whyTaken(
  holdfast: Holdfast,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Taken> {
  try {
    const bound = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS_MAX)]);
    const locks = await orAbort(Promise.all(names.map((name) => holdfast.inspect(name))), bound);
    const own = holdfast.zk.session.id;
    const isOther = ({ session }: ContenderInfo) => session !== own;
    const held =
      locks.find(({ holders }) => holders.some(isOther)) ?? locks.find(({ queue }) => queue.some(isOther));
    if (!held) return UNKNOWN;
    const holders = held.holders.filter(isOther);
    const waiting = held.queue.filter(isOther).length;
    const [first] = holders;
    const others = holders.length > 1 ? ` and ${holders.length - 1} more` : '';
    const which = names.length > 1 ? `${held.name} is ` : '';
    const by = first
      ? `${which}held by ${ownerText(first)}${others} since ${first.since.toLocaleTimeString('en-GB')}, `
      : '';
    return {
      text: `${by}${waiting} ${waiting === 1 ? 'waits' : 'wait'}`,
      json: {
        ...(first && { holder: ownerText(first), since: first.since.toISOString() }),
        holders: holders.length,
        waiting,
      },
    };
  } catch {
    signal.throwIfAborted();
    return UNKNOWN; // Not readable, or no server answers: the lock is taken all the same.
  }
}
