import type { errorCodes } from '../protocol/error-codes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { type Operation, operations } from '../protocol/operations.ts';
import type { ServerConnection } from '../server/server-connection.ts';
import type { ServerSession } from '../server/session-table.ts';
import type { AssembledServer } from '../server/start-server.ts';

/** A session, as its server sees it. */
export interface TestSession {
  readonly id: bigint;
  readonly timeoutMs: number;
  /** Whether a connection serves it now. */
  readonly connected: boolean;
  /** The paths of its ephemeral nodes. */
  readonly ephemerals: readonly string[];
}

/** All the numbers an operation has had over the years: a client's `create` may be any of four. */
const refusable = {
  create: [operations.create, operations.create2, operations.createContainer, operations.createTtl],
  delete: [operations.delete],
  exists: [operations.exists],
  getData: [operations.getData],
  setData: [operations.setData],
  getAcl: [operations.getAcl],
  setAcl: [operations.setAcl],
  getChildren: [operations.getChildren, operations.getChildren2],
  getEphemerals: [operations.getEphemerals],
  getAllChildrenNumber: [operations.getAllChildrenNumber],
  sync: [operations.sync],
  multi: [operations.multi],
  multiRead: [operations.multiRead],
  addWatch: [operations.addWatch],
  checkWatches: [operations.checkWatches],
  removeWatches: [operations.removeWatches],
  whoAmI: [operations.whoAmI],
} as const satisfies Record<string, readonly Operation[]>;

/** What can be refused on demand, by ZooKeeper's name for it. Heartbeats, credentials and `close` cannot. */
export type RefusableOperation = keyof typeof refusable;

/** Which requests are refused, and how. */
export interface RefusalRule {
  readonly operation: RefusableOperation;
  /** What the client is told, e.g. `'throttled-op'`. */
  readonly error: keyof typeof errorCodes;
  /** How many requests; 1 if left out. */
  readonly times?: number;
  /** Only requests for this path, as it goes over the wire: whole, and without a sequence number. */
  readonly path?: string;
  /** Only requests of this session. */
  readonly session?: bigint;
}

/** A refusal that was ordered. */
export interface OrderedRefusal {
  /** How many requests it has refused. */
  readonly count: number;
  /** Refuses no more. */
  cancel(): void;
}

/** What a test may do to a server from inside its process. */
export interface ServerControls {
  /** The sessions, connected or not, oldest first. */
  sessions(): TestSession[];
  /**
   * Ends a session as if its time were over: its ephemeral nodes go, watchers hear of it, its connection is cut, and a
   * client that comes back with it is told that it has expired.
   *
   * @throws RangeError if there is no such session.
   */
  expireSession(id: bigint): void;
  /**
   * Cuts a session's connection without a word. The session stays, and so do its ephemeral nodes; watches go with the
   * connection, as ever. Does nothing if it has none.
   *
   * @throws RangeError if there is no such session.
   */
  dropConnection(id: bigint): void;
  /**
   * Sets the number that the next sequential child gets, from 0 to 2147483647. That is where the counter stays: from
   * then on each child gets 2147483647, so that a second one of the same prefix is refused with `node-exists`, as by
   * ZooKeeper. The parent's cversion, which is reckoned from the counter, changes too. Not written to the folder: gone
   * after a restart.
   *
   * @throws RangeError if there is no such node, or no such number.
   */
  setSequence(parentPath: string, next: number): void;
  /**
   * Stops as a process does that is frozen: connections stay open and new ones are accepted, but nothing is read and
   * nothing goes out. Time goes on. Sessions do not expire meanwhile, but those whose time is over by then do so on
   * `resume`, before anything that their clients sent is read. The admin endpoint goes on answering.
   */
  pause(): void;
  /** Ends a pause; does nothing without one. */
  resume(): void;
  readonly paused: boolean;
  /**
   * Answers the next matching requests with an error, without any effect. Rules are tried in the order they were given.
   *
   * @throws RangeError if `times` is not a positive whole number.
   */
  refuse(rule: RefusalRule): OrderedRefusal;
}

const SEQUENCE_MAX = 2 ** 31 - 1;

interface StandingRule {
  readonly rule: RefusalRule;
  left: number;
}

/** The controls of a server that runs. Each is a call or two of what the server offers anyway. */
export function controlsOf({ core, listener, ticker }: AssembledServer): ServerControls {
  const standing = new Set<StandingRule>();
  let paused = false;

  const existing = (id: bigint): ServerSession<ServerConnection> => {
    const session = core.sessions.get(id);
    if (!session) throw new RangeError(`there is no session 0x${BigInt.asUintN(64, id).toString(16)}`);
    return session;
  };

  core.requestGate = (sessionId, operation, request) => {
    for (const each of standing) {
      if (!matches(each.rule, sessionId, operation, request)) continue;
      each.left--;
      if (each.left === 0) standing.delete(each);
      return each.rule.error;
    }
    return undefined;
  };

  return {
    sessions: () =>
      Array.from(core.sessions.all(), ({ id, timeoutMs, connection }) => ({
        id,
        timeoutMs,
        connected: connection !== undefined,
        ephemerals: core.tree.ephemeralsOf(id),
      })),
    expireSession: (id) => core.expire(existing(id)),
    dropConnection: (id) => core.disconnect(existing(id)),
    setSequence(parentPath, next) {
      const parent = core.tree.get(parentPath);
      if (!parent) throw new RangeError(`there is no node ${parentPath}`);
      if (!Number.isInteger(next) || next < 0 || next > SEQUENCE_MAX) {
        throw new RangeError(`sequence number ${next}; it must be a whole number from 0 to ${SEQUENCE_MAX}`);
      }
      parent.createCount = next;
    },
    pause() {
      paused = true;
      ticker.pause();
      listener.pause();
    },
    resume() {
      if (!paused) return;
      paused = false;
      ticker.resume(); // First: a session that is over by now must not be saved by what its client sent meanwhile.
      listener.resume();
    },
    get paused() {
      return paused;
    },
    refuse(rule) {
      const { times = 1 } = rule;
      if (!Number.isInteger(times) || times < 1)
        throw new RangeError(`times ${times}; it must be at least 1`);
      const ordered: StandingRule = { rule, left: times };
      standing.add(ordered);
      return {
        get count() {
          return times - ordered.left;
        },
        cancel: () => void standing.delete(ordered),
      };
    },
  };
}

function matches(rule: RefusalRule, sessionId: bigint, operation: Operation, request: Buffer): boolean {
  const wanted: readonly Operation[] = refusable[rule.operation];
  if (!wanted.includes(operation)) return false;
  if (rule.session !== undefined && rule.session !== sessionId) return false;
  return rule.path === undefined || pathsOf(operation, request).includes(rule.path);
}

/** The path that a request is about; all of them, if it is a multi. */
function pathsOf(operation: Operation, request: Buffer): (string | undefined)[] {
  try {
    const record = operation.request.read(new JuteReader(request)) as
      | { readonly path?: string }
      | readonly { readonly request: { readonly path?: string } }[]
      | undefined;
    return Array.isArray(record)
      ? record.map((each: { readonly request: { readonly path?: string } }) => each.request.path)
      : [(record as { readonly path?: string } | undefined)?.path];
  } catch (error) {
    if (error instanceof ProtocolError) return []; // Whoever handles it next says what is wrong with it.
    throw error;
  }
}
