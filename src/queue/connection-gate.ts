import { ifAborted } from '../base/abort.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';

const EVENTS = ['connected', 'lost', 'closed'] as const;

/**
 * Where requests of one session wait until there is a connection.
 *
 * The client would keep them too, but what is in its queue leaves with the next connection. What waits here is taken
 * back without a trace when its caller gives up: a caller that gives up while no server can be reached has sent nothing.
 */
export class ConnectionGate {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #waiting = new Set<() => void>();
  #stopListening = () => {};

  constructor(zk: ZooKeeper, session: Session) {
    this.#zk = zk;
    this.#session = session;
  }

  /** Whether a request that is made now is sent, or refused, at once. A session that is over refuses. */
  get isOpen(): boolean {
    const { state } = this.#session;
    return state !== 'connecting' && state !== 'suspended';
  }

  /** Resolves once it is open; rejects with the signal's own reason. Those who wait pass in order of arrival. */
  async pass(signal?: AbortSignal): Promise<void> {
    // It may have closed again before the caller goes on.
    while (!this.isOpen) await this.#wait(signal);
  }

  /** Calls `run` the next time it opens; the function that is returned takes it back. */
  whenOpened(run: () => void): () => void {
    const call = () => run(); // The same `run` may wait twice.
    if (this.#waiting.size === 0) this.#listen();
    this.#waiting.add(call);
    return () => {
      if (this.#waiting.delete(call) && this.#waiting.size === 0) this.#stopListening();
    };
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const takeBack = this.whenOpened(() => {
        stopListening();
        resolve();
      });
      const stopListening = ifAborted(signal, () => {
        takeBack();
        reject(signal!.reason);
      });
    });
  }

  #listen(): void {
    const stops = EVENTS.map((event) => this.#zk.on(event, this.#open));
    this.#stopListening = () => {
      for (const stop of stops) stop();
    };
  }

  readonly #open = () => {
    if (!this.isOpen) return; // An event of another session, or of a connection that has gone since.
    this.#stopListening();
    const calls = [...this.#waiting];
    this.#waiting.clear();
    for (const call of calls) call();
  };
}
