import type { Cancel } from '../base/clock.ts';
import type { WatchEvent } from '../session/watch-registry.ts';
import type { Departure } from './lock-queue.ts';
import type { OwnNode } from './own-node.ts';
import { isInterrupted } from './settled-writes.ts';
import type { StoreSession } from './store-session.ts';

/** Which entry is watched, and who waits for it. */
export interface PredecessorFacts {
  readonly path: string;
  /** Where a holder makes its baton; undefined if its release need not be told from another end. */
  readonly batonPath: string | undefined;
  readonly ownNode: OwnNode;
}

/** How the watch ends. */
export interface PredecessorListener {
  resolve(departure: Departure): void;
  reject(error: unknown): void;
}

/**
 * Watches an entry ahead by the server, and its baton: a path named after the entry where nothing ever stays. A holder
 * releases by one transaction that creates a node there, deletes it, and deletes the entry. The creation is notified
 * first, and only a holder can have made it. Watches of a lost connection are set again without it: the end of the entry
 * is noticed then, and the waiter looks at the queue.
 *
 * The own node is watched by the same request, from the same moment. Otherwise a waiter whose node was removed by hand
 * would be notified of the baton, and hold beside its successor, which is notified of the same one.
 */
export class PredecessorWatch {
  readonly #shared: StoreSession;
  readonly #facts: PredecessorFacts;
  readonly #listener: PredecessorListener;
  #setting: Promise<void> | undefined;
  #isSet = false;
  /** The entry was not there when the watch was set. */
  #isAbsent = false;
  /** The baton was notified by a watch that had been set for someone else. */
  #hasStrayed = false;
  /** Takes back the wait for a connection, or the check by the leader. */
  #cancel: Cancel | undefined;

  constructor(shared: StoreSession, facts: PredecessorFacts, listener: PredecessorListener) {
    this.#shared = shared;
    this.#facts = facts;
    this.#listener = listener;
  }

  /** Sets the watches once there is a connection, if that is not done yet. */
  begin(): void {
    if (this.#setting !== undefined) return;
    const { gate, secondOpinion } = this.#shared;
    if (!gate.isOpen) {
      this.#cancel ??= gate.whenOpened(() => this.begin()); // Leaves nothing behind if the wait is given up before.
      return;
    }
    const { path, batonPath, ownNode } = this.#facts;
    this.#cancel = secondOpinion.about(path, () => this.#listener.resolve('gone'));
    const baton =
      batonPath === undefined ? [] : [{ kind: 'exists', path: batonPath, listener: this.#onBaton } as const];
    const predecessor = { kind: 'data', path, listener: this.#onPredecessor } as const;
    this.#setting = ownNode.watchWith([predecessor, ...baton], () => {
      this.#isSet = true;
      if (this.#isAbsent) this.#listener.resolve(ownNode.isEvicted ? 'gone' : 'absent');
    });
    this.#setting.catch((error) => {
      if (isInterrupted(error)) this.#listener.resolve('gone');
      else this.#listener.reject(error);
    });
  }

  /** The wait is over. A predecessor that was released is deleted, now or soon: its watch is used up by that. */
  end(departure: Departure | undefined): void {
    this.#cancel?.();
    if (this.#setting !== undefined && departure !== 'released')
      void Promise.allSettled([this.#setting]).then(() => this.#unwatch());
  }

  /** Only after the request has been answered: it would set the watches after they were taken away. */
  #unwatch(): void {
    const { store, session } = this.#shared;
    const { zk } = store;
    const { path, batonPath } = this.#facts;
    void zk.unwatch(path, 'data', this.#onPredecessor);
    if (batonPath === undefined) return;
    const stop = () => void zk.unwatch(batonPath, 'exists', this.#onBaton);
    if (!this.#hasStrayed) return stop();
    // The server has set a watch that this client has forgotten: it is set again to be taken away.
    zk.exists(batonPath, { watch: this.#onBaton, session }).then(stop, () => {});
  }

  readonly #onPredecessor = ({ type }: WatchEvent): void => {
    // Before the answer, the same request has notified of the own node first if that was gone: known when it is answered.
    if (type === 'node-deleted' && !this.#isSet) this.#isAbsent = true;
    else if (type !== 'session-lost') this.#listener.resolve('gone');
  };

  readonly #onBaton = ({ type }: WatchEvent): void => {
    if (type !== 'node-created') return;
    // Before these watches are set, it came by those of another waiter, and the own node may have gone unnoticed.
    this.#hasStrayed = !this.#isSet;
    this.#listener.resolve(this.#isSet ? 'released' : 'gone');
  };
}
