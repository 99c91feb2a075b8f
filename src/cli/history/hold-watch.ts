import { systemClock } from '../../base/clock.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import { SessionLostError } from '../../protocol/errors.ts';
import { type HoldEvent, HoldTracker } from './hold-tracker.ts';

/**
 * The history of a lock from now on: each change below its node is followed by a look at the queue. A hold that begins
 * and ends between two looks, about a round trip, is not seen. A lost session is replaced, with a gap.
 */
export async function* watchHolds(
  holdfast: Holdfast,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<HoldEvent, void, void> {
  const tracker = new HoldTracker();
  const now = () => new Date(systemClock.wallMs());
  const look = async () => tracker.look(await holdfast.inspect(name), now(), systemClock.nowMs());
  const path = `${holdfast.root}/${name}`;
  while (!signal.aborted) {
    try {
      const changes = holdfast.zk.events(path, { mode: 'persistent-recursive', signal });
      const first = changes.next(); // Sets the watch: what changes after the look below is told.
      first.catch(() => {});
      await holdfast.zk.sync();
      yield* await look();
      for (let change = await first; !change.done; change = await changes.next()) {
        if (change.value.type === 'watch-gap') yield* tracker.gap(now());
        yield* await look();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof SessionLostError)) throw error;
      yield* tracker.gap(now());
      await holdfast.zk.connected({ signal });
    }
  }
}
