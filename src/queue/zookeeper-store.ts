import type { QueueStore } from './queue-store.ts';
import { StoreSession } from './store-session.ts';

/** The queues' view of one client: what does not change, and what its sessions share, one after the other. */
export class ZooKeeperStore {
  readonly facts: QueueStore;
  #current: StoreSession | undefined;

  constructor(facts: QueueStore) {
    this.facts = facts;
  }

  /** What is shared within the client's session of this moment. */
  get current(): StoreSession {
    const { session } = this.facts.zk;
    if (this.#current?.session !== session) this.#current = new StoreSession(this.facts, session);
    return this.#current;
  }
}
