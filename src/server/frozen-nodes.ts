import type { PathMap } from './path-map.ts';

/** What a node must carry to be part of a picture. */
export interface Stamped {
  /** The last picture that has this node already, or is not to have it. */
  stamp: number;
}

/**
 * All nodes of a tree as of one moment, walked through bit by bit while the tree changes.
 *
 * Nothing is copied at the start. A node that is about to change before the walk has come to it is kept as it was;
 * its stamp says that it has been kept, or given out, so that each is given out once. A node made later carries the
 * stamp from its birth and is passed over.
 *
 * What the walk gives out is the node itself: to be used before anything else happens.
 */
export class FrozenNodes<N extends Stamped> implements Iterable<readonly [path: string, node: N]> {
  /** How many the walk will give out. */
  readonly nodeCount: number;
  readonly #nodes: PathMap<N>;
  readonly #stamp: number;
  readonly #onRelease: () => void;
  #kept: [path: string, node: N][] = [];

  constructor(nodes: PathMap<N>, stamp: number, onRelease: () => void) {
    this.nodeCount = nodes.size;
    this.#nodes = nodes;
    this.#stamp = stamp;
    this.#onRelease = onRelease;
  }

  /** The node is about to change, or to go. */
  keep(path: string, node: N): void {
    if (node.stamp === this.#stamp) return;
    node.stamp = this.#stamp;
    this.#kept.push([path, { ...node }]);
  }

  *[Symbol.iterator](): Generator<readonly [path: string, node: N]> {
    // A Map's own walk goes on through changes: it comes to what was added and passes over what was deleted.
    for (const entry of this.#nodes) {
      while (this.#kept.length > 0) yield this.#kept.pop()!;
      const [, node] = entry;
      if (node.stamp === this.#stamp) continue;
      node.stamp = this.#stamp;
      yield entry;
    }
    while (this.#kept.length > 0) yield this.#kept.pop()!;
  }

  /** The tree need keep nothing more for this picture. */
  release(): void {
    this.#kept = [];
    this.#onRelease();
  }
}
