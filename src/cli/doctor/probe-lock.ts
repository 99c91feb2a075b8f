import { systemClock } from '../../base/clock.ts';
import { systemRandom } from '../../base/random.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import { isServerError } from '../../protocol/errors.ts';
import type { Finding } from './finding.ts';

const PROBE_TIMEOUT_MS = 10_000;

/** What taking a lock of its own came to, and how far this machine's clock is behind the server's. */
export interface Probe {
  readonly finding: Finding;
  readonly skewMs: number | undefined;
}

/** Takes a lock that nobody else wants and lets it go: the one check that says it all. Leaves nothing behind. */
export async function probeLock(holdfast: Holdfast): Promise<Probe> {
  const name = `holdfast-doctor-${Buffer.from(systemRandom.bytes(8)).toString('hex')}`;
  try {
    const startedAtMs = systemClock.nowMs();
    const wallMs = systemClock.wallMs();
    const lease = await holdfast
      .mutex(name)
      .acquire({ timeoutMs: PROBE_TIMEOUT_MS, reason: 'holdfast doctor' });
    const acquiredMs = systemClock.nowMs() - startedAtMs;
    const wallMsAfter = systemClock.wallMs();
    const { holders } = await holdfast.inspect(name);
    await lease.release();
    const totalMs = systemClock.nowMs() - startedAtMs;
    await removeFolder(holdfast, `${holdfast.root}/${name}`);
    const made = holders[0]?.since.getTime();
    const detail = `taken in ${acquiredMs.toFixed(1)} ms, let go after ${totalMs.toFixed(1)} ms`;
    return {
      finding: { check: 'lock', verdict: 'ok', detail },
      skewMs: made && outside(made, wallMs, wallMsAfter),
    };
  } catch (error) {
    const advice = isServerError(error, 'no-auth')
      ? 'give credentials (--auth, HOLDFAST_AUTH) that may write under the root'
      : 'no lock can be taken now: see the other findings';
    return {
      finding: { check: 'lock', verdict: 'fail', detail: (error as Error).message, advice },
      skewMs: undefined,
    };
  }
}

/** How far outside: a moment that lies between the two proves nothing, however far apart they are. */
function outside(atMs: number, fromMs: number, untilMs: number): number {
  return atMs < fromMs ? atMs - fromMs : atMs > untilMs ? atMs - untilMs : 0;
}

/** The servers would do so within a minute. */
async function removeFolder(holdfast: Holdfast, path: string): Promise<void> {
  try {
    await holdfast.zk.delete(path);
  } catch (error) {
    if (!isServerError(error, 'no-node') && !isServerError(error, 'no-auth')) throw error;
  }
}
