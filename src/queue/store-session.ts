import type { Session } from '../client/session.ts';
import { BatchedWatches } from './batched-watches.ts';
import { BatchedWrites } from './batched-writes.ts';
import { CatchUp } from './catch-up.ts';
import { ConnectionGate } from './connection-gate.ts';
import { FolderWatches } from './folder-watches.ts';
import type { QueueStore } from './queue-store.ts';
import { SecondOpinion } from './second-opinion.ts';
import { SessionTokens } from './session-tokens.ts';

/** What all queues of one client share within one session. The store makes one for each session of its client. */
export class StoreSession {
  readonly store: QueueStore;
  readonly session: Session;
  readonly gate: ConnectionGate;
  readonly writes: BatchedWrites;
  readonly watches: BatchedWatches;
  readonly folderWatches: FolderWatches;
  readonly tokens: SessionTokens;
  readonly catchUp: CatchUp;
  readonly secondOpinion: SecondOpinion;

  constructor(store: QueueStore, session: Session) {
    const { zk, clock, batonFolder } = store;
    this.store = store;
    this.session = session;
    this.gate = new ConnectionGate(zk, session);
    this.writes = new BatchedWrites(zk, session, { clock, gate: this.gate });
    this.watches = new BatchedWatches(zk, session, clock);
    this.folderWatches = new FolderWatches(zk, session, { clock, watches: this.watches });
    this.tokens = new SessionTokens(zk, session, batonFolder);
    this.catchUp = new CatchUp(zk, session, { clock, writes: this.writes });
    this.secondOpinion = new SecondOpinion(zk, session, clock);
  }
}
