import type { Clock } from '../../src/base/clock.ts';
import { type Log, silentLog } from '../../src/base/log.ts';
import { fraction, type Random } from '../../src/base/random.ts';
import { firstZxid } from '../../src/server/first-zxid.ts';
import type { ServerConnection } from '../../src/server/server-connection.ts';
import { ServerCore } from '../../src/server/server-core.ts';
import type { ServerLimits } from '../../src/server/server-limits.ts';
import { Store } from '../../src/server/storage/store.ts';
import type { StoreStatistics } from '../../src/server/storage/store-statistics.ts';
import { Ticker } from '../../src/server/ticker.ts';
import type { Transaction } from '../../src/server/transaction.ts';
import type { ServerAddress } from '../../src/session/session-io.ts';
import type { SimulatedFolder } from './simulated-folder.ts';
import type { SimulatedListener, SimulatedNetwork } from './simulated-network.ts';

export interface SimulatedServerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly network: SimulatedNetwork;
  readonly address: ServerAddress;
  readonly folder: SimulatedFolder;
  readonly limits?: Partial<ServerLimits>;
  /** A sync of the disk takes up to this long; asked for each, if it changes. */
  readonly syncMsMax?: number | (() => number);
  /** Told of each transaction before it is written. */
  readonly onTransaction?: (transaction: Transaction) => void;
  /** Told before anyone is shown what was done up to this transaction; and that the disk did not take the rest. */
  readonly onSettled?: (zxid: bigint) => void;
  readonly onTakenBack?: () => void;
  /** Small ones make for many snapshots. */
  readonly logBytesMax?: number;
  readonly log?: Log;
  /** What is to stand in front of it. */
  readonly front?: (listener: SimulatedListener) => SimulatedListener;
}

/** A server in a simulated process, on a simulated network and disk. */
export interface SimulatedServer {
  readonly core: ServerCore;
  /** What its connections are given to. */
  readonly listener: SimulatedListener;
  readonly disk: StoreStatistics;
  /** Time passes and nobody looks; what comes in must be held up meanwhile. */
  pause(): void;
  /** Looks at once: sessions whose time is over by now end. */
  resume(): void;
  /** The process dies and the power goes: the folder that is left, for the next start. */
  crash(): SimulatedFolder;
}

const LOG_BYTES_MAX = 16 * 1024;
const SYNC_MS_MAX = 10;

/** Starts a server on what its folder holds. Time must pass for it to start: its disk takes some. */
export async function startSimulatedServer(options: SimulatedServerOptions): Promise<SimulatedServer> {
  const { clock, random, network, address, folder, log = silentLog, onTransaction } = options;
  slowDown(options);
  const { store, recovered } = await Store.open(folder, {
    clock,
    random,
    log,
    logBytesMax: options.logBytesMax ?? LOG_BYTES_MAX,
    firstZxid: (used) => firstZxid(clock.wallMs(), used),
  });
  const core = new ServerCore({
    clock,
    random,
    log,
    recovered,
    journal: {
      append(transaction) {
        onTransaction?.(transaction);
        store.append(transaction);
      },
    },
    ...(options.limits && { limits: options.limits }),
  });
  const ticker = new Ticker(core, clock);
  store.serve({
    durable: (zxid) => {
      options.onSettled?.(zxid);
      core.durable(zxid);
      ticker.arm();
    },
    storeFailed: (error) => {
      options.onTakenBack?.();
      core.storeFailed(error);
      ticker.arm();
    },
    storeMended: () => {
      core.storeMended();
      ticker.arm();
    },
    takeZxid: () => core.takeZxid(),
    state: () => core.state(),
  });
  const listener: SimulatedListener = {
    accept: (link, peer) => core.accept(link, peer),
    receive: (connection, chunk) => core.receive(connection as ServerConnection, chunk),
    closed: (connection) => core.closed(connection as ServerConnection),
    drained: (connection) => core.drained(connection as ServerConnection),
    stepped: () => ticker.arm(),
  };
  const die = network.listen(address, options.front?.(listener) ?? listener);
  ticker.arm();
  return {
    core,
    listener,
    disk: store.statistics,
    pause: () => ticker.pause(),
    resume: () => ticker.resume(),
    crash() {
      ticker.stop();
      die();
      folder.stopAt = 0; // What the dead process had under way ends here.
      return folder.afterPowerCut(random);
    },
  };
}

/** What is written and not synced yet is what a power cut may take: on a disk without delay there would be no such time. */
function slowDown({ folder, clock, random, syncMsMax = SYNC_MS_MAX }: SimulatedServerOptions): void {
  folder.pause = async ({ kind }) => {
    if (kind !== 'sync') return;
    await new Promise<void>((resolve) => {
      const msMax = typeof syncMsMax === 'number' ? syncMsMax : syncMsMax();
      clock.at(clock.nowMs() + fraction(random) * msMax, resolve);
    });
  };
}
