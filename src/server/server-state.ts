import type { Clock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { type Random, systemRandom } from '../base/random.ts';
import type { Operation } from '../protocol/operations.ts';
import type { RefusalCondition } from './access.ts';
import { DataTree } from './data-tree.ts';
import { firstZxid } from './first-zxid.ts';
import { ReadOperations } from './read-operations.ts';
import type { ServerConnection } from './server-connection.ts';
import { limitsFrom, type ServerLimits } from './server-limits.ts';
import { ServerStatistics } from './server-statistics.ts';
import { SessionTable } from './session-table.ts';
import type { DiskReport } from './storage/disk-report.ts';
import type { Recovered } from './storage/recover.ts';
import type { SavedState } from './storage/snapshot-format.ts';
import type { Journal } from './transaction.ts';
import { TransactionLog } from './transaction-log.ts';
import { WatchTable } from './watch-table.ts';
import { WriteOperations } from './write-operations.ts';

export interface ServerStateOptions {
  readonly clock: Clock;
  readonly random?: Random;
  readonly limits?: Partial<ServerLimits>;
  readonly ttlNodes?: boolean;
  readonly superDigest?: string;
  readonly log?: Log;
  /** What an earlier run left on disk. */
  readonly recovered?: Recovered;
  /** Where transactions go before any client may see their effect; nowhere if left out. */
  readonly journal?: Journal;
  /** What operators may know of the folder, if there is one. */
  readonly disk?: DiskReport;
}

/** What the parts of a server share: its nodes, sessions, watches and connections, and the log of what changes them. */
export class ServerState {
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: ServerLimits;
  readonly superDigest: string | undefined;
  readonly disk: DiskReport | undefined;
  readonly startedAtMs: number;
  /** Where clients reach this server, for operators to read: set by what listens. */
  listening: { readonly port?: number; readonly securePort?: number } = {};
  readonly statistics = new ServerStatistics();
  readonly tree: DataTree;
  readonly watches = new WatchTable<ServerConnection>();
  readonly sessions: SessionTable<ServerConnection>;
  readonly connections = new Set<ServerConnection>();
  /** Those that have no session yet, the oldest first. */
  readonly handshaking = new Set<ServerConnection>();
  /** Called with a request's bytes before they are read, if it is set: what to refuse it with, or nothing. */
  requestGate?: (session: bigint, operation: Operation, request: Buffer) => RefusalCondition | undefined;
  readonly transactions: TransactionLog;
  readonly reads: ReadOperations;
  readonly writes: WriteOperations;

  constructor({ clock, random = systemRandom, log = silentLog, recovered, ...options }: ServerStateOptions) {
    this.clock = clock;
    this.log = log;
    this.limits = limitsFrom(options.limits);
    this.superDigest = options.superDigest;
    this.disk = options.disk;
    this.startedAtMs = clock.nowMs();
    this.tree = recovered?.tree ?? new DataTree();
    this.sessions = new SessionTable({ random, tickMs: this.limits.tickMs, wallMs: clock.wallMs() });
    // As in ZooKeeper: a full timeout from now, since it is not known how long the server was away.
    for (const session of recovered?.sessions.values() ?? []) this.sessions.restore(session, clock.nowMs());
    const zxid = firstZxid(clock.wallMs(), recovered?.usedZxid ?? 0n);
    this.transactions = new TransactionLog(clock, zxid, options.journal);
    this.reads = new ReadOperations(this.tree, this.limits.replyBytesMax);
    this.writes = new WriteOperations(this.tree, { ...this.limits, ttlNodes: options.ttlNodes ?? true });
  }

  get zxid(): bigint {
    return this.transactions.zxid;
  }
  /** Why writes are refused, while they are. */
  get writeFault(): string | undefined {
    return this.transactions.fault;
  }
  /** Whether the disk takes nothing: reads are answered, and nothing changes. */
  get readOnly(): boolean {
    return this.transactions.fault !== undefined;
  }

  /** Everything that is to be kept, as of now. */
  state(): SavedState {
    return {
      zxid: this.zxid,
      sessions: [...this.sessions.all()].map(({ id, password, timeoutMs }) => ({ id, password, timeoutMs })),
      nodes: this.tree.freeze(),
    };
  }
}
