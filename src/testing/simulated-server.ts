import type { Clock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { fraction, type Random } from '../base/random.ts';
import { firstZxid, ServerCore } from '../server/server-core.ts';
import type { ServerLimits } from '../server/server-limits.ts';
import type { Folder } from '../server/storage/folder.ts';
import { Store } from '../server/storage/store.ts';
import type { StoreStatistics } from '../server/storage/store-statistics.ts';
import { Ticker } from '../server/ticker.ts';
import type { ServerAddress } from '../session/session-io.ts';
import type { SimulatedFolder } from './simulated-folder.ts';
import type { SimulatedNetwork } from './simulated-network.ts';

export interface SimulatedServerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly network: SimulatedNetwork;
  readonly address: ServerAddress;
  readonly folder: SimulatedFolder;
  readonly limits?: Partial<ServerLimits>;
  /** A sync of the disk takes up to this long. */
  readonly syncMsMax?: number;
  /** Small ones make for many snapshots. */
  readonly logBytesMax?: number;
  readonly log?: Log;
}

/** A server in a simulated process, on a simulated network and disk. */
export interface SimulatedServer {
  readonly core: ServerCore;
  readonly disk: StoreStatistics;
  /** The process dies and the power goes: the folder that is left, for the next start. */
  crash(): SimulatedFolder;
}

const LOG_BYTES_MAX = 16 * 1024;
const SYNC_MS_MAX = 10;

/** Starts a server on what its folder holds. Time must pass for it to start: its disk takes some. */
export async function startSimulatedServer(options: SimulatedServerOptions): Promise<SimulatedServer> {
  const { clock, random, network, address, folder, log = silentLog } = options;
  const { store, recovered } = await Store.open(withSlowSync(options), {
    clock,
    log,
    logBytesMax: options.logBytesMax ?? LOG_BYTES_MAX,
    firstZxid: (used) => firstZxid(clock.wallMs(), used),
  });
  const core = new ServerCore({
    clock,
    random,
    log,
    recovered,
    journal: store,
    ...(options.limits && { limits: options.limits }),
  });
  const ticker = new Ticker(core, clock);
  store.serve({
    durable: (zxid) => {
      core.durable(zxid);
      ticker.arm();
    },
    storeFailed: (error) => core.storeFailed(error),
    state: () => core.state(),
  });
  const die = network.listen(address, {
    accept: (link, peer) => core.accept(link, peer),
    receive: (connection, chunk) => core.receive(connection, chunk),
    closed: (connection) => core.closed(connection),
    drained: (connection) => core.drained(connection),
    stepped: () => ticker.arm(),
  });
  ticker.arm();
  return {
    core,
    disk: store.statistics,
    crash() {
      ticker.stop();
      die();
      // A copy: what the dead process had under way reaches its own folder only.
      const left = folder.copy();
      left.powerCut(random);
      return left;
    },
  };
}

/** What is written and not synced yet is what a power cut may take: on a disk without delay there would be no such time. */
function withSlowSync({ folder, clock, random, syncMsMax = SYNC_MS_MAX }: SimulatedServerOptions): Folder {
  return {
    list: () => folder.list(),
    read: (name) => folder.read(name),
    truncate: (name, bytes) => folder.truncate(name, bytes),
    rename: (from, to) => folder.rename(from, to),
    remove: (name) => folder.remove(name),
    async create(name) {
      const file = await folder.create(name);
      return {
        write: (bytes) => file.write(bytes),
        close: () => file.close(),
        async sync() {
          await new Promise<void>((resolve) => {
            clock.at(clock.nowMs() + fraction(random) * syncMsMax, resolve);
          });
          await file.sync();
        },
      };
    },
  };
}
