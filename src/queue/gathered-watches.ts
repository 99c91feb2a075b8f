import type { Clock } from '../base/clock.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import type { QueueStore } from './queue-store.ts';

type Watches = Parameters<ZooKeeper['watchSince']>[1];

/** Well under what a request may be long, with the longest names there are. */
const GATHERED_MAX = 300;

interface Gathering {
  sinceZxid: bigint;
  readonly watches: Watches[number][];
  readonly onSet: (() => void)[];
  readonly set: Promise<bigint>;
}

/** Watches of one session: those that are asked for in one tick are set by one request. */
export class GatheredWatches {
  readonly #zk: ZooKeeper;
  readonly #session: Session;
  readonly #clock: Clock;
  #gathering: Gathering | undefined;

  constructor(zk: ZooKeeper, session: Session, clock: Clock) {
    this.#zk = zk;
    this.#session = session;
    this.#clock = clock;
  }

  /**
   * Resolves when they are set, with the transaction from which on changes are told: `sinceZxid`, or a later one. That
   * a node is not there is told in any case. `onSet` is called before anything is told that happens after that.
   */
  set(sinceZxid: bigint, watches: Watches, onSet: () => void): Promise<bigint> {
    if (this.#gathering && this.#gathering.watches.length + watches.length > GATHERED_MAX)
      this.#gathering = undefined;
    this.#gathering ??= this.#gather();
    const gathering = this.#gathering;
    gathering.watches.push(...watches);
    gathering.onSet.push(onSet);
    // An earlier one would tell of nodes that were made since as of changed ones.
    if (sinceZxid > gathering.sinceZxid) gathering.sinceZxid = sinceZxid;
    return gathering.set;
  }

  #gather(): Gathering {
    const set = new Promise<bigint>((resolve, reject) => {
      this.#clock.endOfTick(() => {
        if (this.#gathering === gathering) this.#gathering = undefined;
        const { sinceZxid, watches } = gathering;
        const session = this.#session;
        // In the first reaction to the answer: later ones come behind what the server says next.
        const onAnswer = () => {
          for (const onSet of gathering.onSet) onSet();
          resolve(sinceZxid);
        };
        this.#zk.watchSince(sinceZxid, watches, { session }).then(onAnswer, reject);
      });
    });
    const gathering: Gathering = { sinceZxid: 0n, watches: [], onSet: [], set };
    return gathering;
  }
}

const bySession = new WeakMap<Session, GatheredWatches>();

/** The one of a session: all its places share it. */
export function gatheredWatchesOf({ zk, clock }: QueueStore, session: Session): GatheredWatches {
  let gathered = bySession.get(session);
  if (!gathered) {
    gathered = new GatheredWatches(zk, session, clock);
    bySession.set(session, gathered);
  }
  return gathered;
}
