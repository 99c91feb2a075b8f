import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import { untilAnswered } from './settled-writes.ts';

/** Whose queue is watched, and by whom. */
export interface OthersWatch {
  readonly folder: string;
  /** The name of the own entry. */
  readonly self: string;
  readonly session: Session;
  /** Whether the own entry is being removed, or has been. */
  isLeft(): boolean;
  /** Somebody else is in the queue, or may be; called once or more. */
  told(): void;
}

/**
 * Tells when anybody else is in a queue: one list, and the watch that it sets. The watch need not be taken away: it goes
 * with the first change, and the removal of the own entry is one.
 */
export async function watchForOthers(
  zk: ZooKeeper,
  { folder, self, session, isLeft, told }: OthersWatch,
): Promise<void> {
  const watch = ({ type }: WatchEvent) => {
    if (type !== 'session-lost') told();
  };
  const names = await untilAnswered(() => zk.children(folder, { watch, session }));
  // An answer that came only over another connection may have set the watch behind the removal.
  if (isLeft()) void zk.unwatch(folder, 'children', watch);
  if (names.some((name) => name !== self)) told();
}
