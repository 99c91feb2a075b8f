import { type Holdfast, type LockLease, ZkError } from '../../src/holdfast.ts';
import { nowMs, type Recorder } from './recorder.ts';
import type { Wish } from './scene.ts';

/** What locks protect is here, one node for each. */
export const REGISTER_FOLDER = '/registers';

/** A hold, and as what it was wanted. */
interface Hold {
  readonly wish: Wish;
  readonly attempt: string;
  readonly lease: LockLease;
}

/**
 * Counts on in what the lock protects: a plain read and a plain write through the holder's own connection, as programs do
 * that trust the lock. No increment may be lost: the checker's L15. A reader only reads; permits keep nobody out.
 */
export async function useRegisters(holdfast: Holdfast, recorder: Recorder, hold: Hold): Promise<void> {
  if (hold.wish.mode === 'lease') return;
  for (const lock of hold.wish.locks) {
    const value = await read(holdfast, recorder, hold, lock);
    if (value !== undefined && hold.wish.mode !== 'read')
      await countOn(holdfast, recorder, hold, { lock, value });
  }
}

/** Undefined if nothing was read, or the lock was not held any more by then. */
async function read(
  holdfast: Holdfast,
  recorder: Recorder,
  { attempt, lease }: Hold,
  lock: string,
): Promise<string | undefined> {
  if (lease.remainingMs() <= 0) return undefined;
  try {
    const { data } = await holdfast.zk.get(`${REGISTER_FOLDER}/${lock}`);
    if (lease.remainingMs() <= 0) return undefined;
    const value = data?.toString('latin1') ?? '';
    recorder.record({ kind: 'register-read', atMs: nowMs(), attempt, lock, value });
    return value;
  } catch (error) {
    if (!(error instanceof ZkError)) throw error;
    return undefined;
  }
}

async function countOn(
  holdfast: Holdfast,
  recorder: Recorder,
  { attempt, lease }: Hold,
  { lock, value: before }: { readonly lock: string; readonly value: string },
): Promise<void> {
  // Looked at right before it is sent: what goes out behind the end of its session is refused by the servers.
  if (lease.remainingMs() <= 0) return;
  const write = { attempt, lock, value: `${Number.parseInt(before || '0', 10) + 1} by ${attempt}` };
  recorder.record({ kind: 'register-write-began', atMs: nowMs(), ...write });
  const ended = (outcome: 'applied' | 'not-applied' | 'unknown') =>
    recorder.record({ kind: 'register-write-ended', atMs: nowMs(), ...write, outcome });
  try {
    await holdfast.zk.set(`${REGISTER_FOLDER}/${lock}`, write.value);
    ended('applied');
  } catch (error) {
    if (!(error instanceof ZkError)) throw error;
    ended(error.outcome);
  }
}
