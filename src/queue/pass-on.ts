import { type MultiWrite, ops } from '../client/operations-of-multi.ts';
import { MultiError } from '../protocol/errors.ts';
import type { BatchedWrites } from './batched-writes.ts';
import { type Follower, remainingOf } from './neighbours.ts';
import { untilSettled, type WriteBounds } from './settled-writes.ts';

/** So many successors are checked by one transaction: with the longest paths there are it stays below 512 KiB. */
const CHECKS_MAX = 128;

/** A place that is passed on. */
interface PlaceToLeave {
  readonly folder: string;
  readonly path: string;
  readonly bounds: WriteBounds;
  readonly writes: BatchedWrites;
  /** What makes the baton; nothing if all who wait have been notified in memory. */
  readonly baton: readonly MultiWrite<unknown>[];
  makeBatonFolder(): void;
}

/**
 * Removes the node of a place, and notifies those behind it that it was released: by the baton, unless the only one has
 * been notified in memory.
 *
 * A successor that was notified in memory holds by now, or has notified its own successor. The node of the successor
 * that holds when this node is removed must be there before that. If it is not, that successor is notified first, and no
 * other can have been granted. Successors that have released in between need no check: they held while this node was
 * there. False if it could not be done this way; nothing has happened then.
 *
 * More successors than fit into one transaction are checked by others before it: one that is removed after its check is
 * removed as any holder is, and is notified by its own watch.
 */
export async function passOn(followers: readonly Follower[], place: PlaceToLeave): Promise<boolean> {
  const { folder, path, bounds, writes, baton } = place;
  const settled = new Set<Follower>();
  let holders: readonly Follower[] = [];
  let isLast = false;
  const operations = () => {
    const unchecked = remainingOf(followers).filter((follower) => !settled.has(follower));
    isLast = unchecked.length <= CHECKS_MAX;
    holders = unchecked.slice(0, CHECKS_MAX);
    // By their names: they are in the same folder, and their clients may have other chroots.
    const checks = holders.map(({ name }) => ops.check(`${folder}/${name}`));
    return isLast ? [...checks, ...baton, ops.delete(path)] : checks;
  };
  let done = false;
  await untilSettled(bounds, async () => {
    while (!done) {
      try {
        await writes.multi(operations);
        if (isLast) done = true;
        else for (const holder of holders) settled.add(holder);
      } catch (error) {
        if (!(error instanceof MultiError)) throw error;
        const isGone = error.condition === 'no-node';
        const holder = holders[error.index];
        if (!holder) {
          const at = error.index - holders.length;
          done = isGone && at === baton.length;
          // Without the folder, or the right to write in it, the one behind has to look for itself.
          if (isGone && !done) place.makeBatonFolder();
          return;
        }
        if (isGone) holder.evict();
        settled.add(holder);
      }
    }
  });
  return done;
}
