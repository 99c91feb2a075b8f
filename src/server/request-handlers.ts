import { isSameSecret } from '../base/hash.ts';
import { addWatchModes, type NodeEventType } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import type { JuteReader } from '../protocol/jute-reader.ts';
import type { JuteWriter } from '../protocol/jute-writer.ts';
import {
  beginMultiChildren,
  endMultiResults,
  type MultiResult,
  writeMultiResult,
} from '../protocol/multi.ts';
import {
  type Operation,
  opcodeOfDeleteContainer,
  operationOf,
  operations,
  xids,
} from '../protocol/operations.ts';
import type { Codec, ValueOf } from '../protocol/record.ts';
import { Stat } from '../protocol/records.ts';
import { digestIdentity, Refusal, userNameOf } from './access.ts';
import { type DataTree, type Moment, statOf, type TreeNode } from './data-tree.ts';
import { childrenOf, type ReadOperations } from './read-operations.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerLimits } from './server-limits.ts';
import type { DropKind } from './server-statistics.ts';
import type { ServerSession, SessionTable } from './session-table.ts';
import { restoreWatches, sizeOf } from './set-watches.ts';
import { ITEMS_PER_STEP, type SlicedResult, type SlicedWork } from './sliced-work.ts';
import type { WatchTable } from './watch-table.ts';
import type { Asker, WriteOperations, Written } from './write-operations.ts';

export interface Request {
  readonly xid: number;
  readonly opcode: number;
  readonly input: JuteReader;
}

/** What goes back, and what becomes of the connection. */
export interface Answer {
  readonly zxid: bigint;
  readonly err: number;
  /** How the body is written; none if left out. */
  readonly codec?: Codec<unknown> | undefined;
  readonly value?: unknown;
  /** The connection is ended once this has gone out. */
  readonly ends?: true;
  /** The one node whose state it shows, if it shows no more than that. Left out, it may show anything. */
  readonly shows?: TreeNode | 'nothing' | undefined;
  /** How a long body is written, in the place of the codec. */
  readonly inSteps?: ((out: JuteWriter) => SlicedWork) | undefined;
  /** The answer is dear, and is made in a step of its own. */
  readonly later?: (() => Answer) | undefined;
}

/** What the operations need of the server. */
export interface HandlerContext {
  readonly tree: DataTree;
  readonly reads: ReadOperations;
  readonly writes: WriteOperations;
  readonly watches: WatchTable<ServerConnection>;
  readonly sessions: SessionTable<ServerConnection>;
  readonly limits: Pick<
    ServerLimits,
    'watchesMax' | 'watchesPerConnectionMax' | 'watchBytesMax' | 'multiOpsMax' | 'identityBytesMax'
  >;
  readonly superDigest: string | undefined;
  readonly zxid: bigint;
  readonly nowMs: number;
  readonly writeRefusal: number | undefined;
  nextMoment(): Moment;
  commit(written: Written<unknown>, moment: Moment): void;
  closeSession(session: ServerSession<ServerConnection>): Moment;
  notify(connection: ServerConnection, type: NodeEventType, path: string, zxid: bigint): void;
  /** Answers; what is returned must be done first, if it is. */
  answer(connection: ServerConnection, xid: number, answer: Answer): SlicedWork | undefined;
  /** Removes some more of what a session held that is over; true if nothing is left. */
  endMore(session: ServerSession<ServerConnection>): boolean;
  drop(connection: ServerConnection, reason: string, kind?: DropKind): void;
}

/** A longer list of operations is prepared in steps; one that may be longer is read in steps. */
const OPS_AT_ONCE = 16;
const LIST_BYTES_SHORT = 8 * 1024;
/** The same, where there are access lists or identities that take a while to look through. */
const DEAR_LIST_BYTES_SHORT = 1024;
const IDENTITY_COUNT_SHORT = 8;
/** What is longer than this, and has lists in it, is read in steps. */
const FRAME_BYTES_SHORT = 16 * 1024;
/** More names than these are written in steps. */
const NAMES_AT_ONCE = 512;

type Req<O extends Operation> = ValueOf<O['request']>;

/** What each operation does: decode, perform, answer. The rules themselves are in the read and write operations. */
export class RequestHandlers {
  readonly #core: HandlerContext;
  /** Watches that there is to be room for, since they are being set. */
  #watchesToCome = 0;

  constructor(core: HandlerContext) {
    this.#core = core;
  }

  /** What is returned is still to be done before the request is. */
  handle(connection: ServerConnection, request: Request): SlicedWork | undefined {
    const { xid, opcode } = request;
    const operation = operationOf(opcode);
    if (opcode === opcodeOfDeleteContainer) {
      const { zxid } = this.#core.nextMoment();
      return this.#answer(connection, xid, { zxid, err: errorCodes['bad-arguments'] });
    }
    if (!operation) {
      return this.#answer(connection, xid, { zxid: -1n, err: errorCodes.unimplemented, ends: true });
    }
    connection.lastOperation = operation.name;
    connection.lastXid = xid;
    const session = connection.session!;
    if (operation !== operations.auth && operation !== operations.sasl) {
      this.#core.sessions.touch(session, this.#core.nowMs);
    }
    // Nobody is there for the answer of a read, nor for the events of a watch.
    if (connection.departed && !operation.writes && operation !== operations.auth) return undefined;
    // A ping is answered with the xid of pings, whatever it came with.
    const answered = operation === operations.ping ? xids.ping : xid;
    if (this.#mayBeDear(connection, operation, request))
      return this.#inSteps(connection, operation, request, answered);
    let answer: Answer;
    try {
      answer = operation.writes
        ? this.#write(connection, operation, request)
        : this.#read(connection, operation, request);
    } catch (error) {
      answer = this.#refused(error);
    }
    if (answer.later) return this.#later(connection, answered, answer.later);
    return this.#answer(connection, answered, answer);
  }

  /** Whether a request may take longer than a step, as far as that can be told before it is read. */
  #mayBeDear({ identities }: ServerConnection, operation: Operation, { input }: Request): boolean {
    switch (operation) {
      case operations.multi:
      case operations.multiRead: {
        const hasLong = this.#core.tree.longAclCount > 0 || identities.length > IDENTITY_COUNT_SHORT;
        return input.remaining > (hasLong ? DEAR_LIST_BYTES_SHORT : LIST_BYTES_SHORT);
      }
      case operations.setWatches:
      case operations.setWatches2:
      case operations.getEphemerals:
        return true;
      default:
        return input.remaining > FRAME_BYTES_SHORT && operation.request.readInSteps !== undefined;
    }
  }

  *#later(connection: ServerConnection, xid: number, make: () => Answer): SlicedWork {
    yield;
    let answer: Answer;
    try {
      answer = make();
    } catch (error) {
      answer = this.#refused(error);
    }
    const rest = this.#answer(connection, xid, answer);
    if (rest) yield* rest;
  }

  /** As `handle`, for a request that may take more than a step: what it shows, or does, happens within one. */
  *#inSteps(connection: ServerConnection, operation: Operation, request: Request, xid: number): SlicedWork {
    yield; // It is begun when there is time for it.
    let answer: Answer | undefined;
    try {
      answer = operation.writes
        ? yield* this.#writeInSteps(connection, operation, request)
        : yield* this.#readInSteps(connection, operation, request);
    } catch (error) {
      answer = this.#refused(error);
    }
    const rest = answer && this.#answer(connection, xid, answer);
    if (rest) yield* rest;
  }

  /** A refusal, or a record that cannot be read, becomes the answer that says so. */
  #refused(error: unknown): Answer {
    if (error instanceof Refusal) return answerOf(this.#core.zxid, error.serverCode);
    if (error instanceof ProtocolError) return answerOf(this.#core.zxid, errorCodes['marshalling-error']);
    throw error;
  }

  // Writes: a zxid first, then everything else.

  #write(connection: ServerConnection, operation: Operation, { input }: Request): Answer {
    return this.#writeRecord(connection, operation, () => operation.request.read(input));
  }

  /** Reads and prepares in steps; what is done is done in one. */
  *#writeInSteps(
    connection: ServerConnection,
    operation: Operation,
    { input }: Request,
  ): SlicedResult<Answer | undefined> {
    let record: unknown;
    let fault: unknown;
    try {
      record = yield* operation.request.readInSteps!(input);
      if (operation === operations.multi)
        yield* this.#prepare(connection, record as Req<typeof operations.multi>);
    } catch (error) {
      fault = error;
    }
    if (connection.session!.over) return undefined;
    return this.#writeRecord(connection, operation, () => {
      if (fault !== undefined) throw fault;
      return record;
    });
  }

  *#prepare(connection: ServerConnection, ops: Req<typeof operations.multi>): SlicedWork {
    if (ops.length <= OPS_AT_ONCE || ops.length > this.#core.limits.multiOpsMax) return;
    yield* this.#core.writes.prepare(ops, askerOf(connection));
  }

  #writeRecord(connection: ServerConnection, operation: Operation, read: () => unknown): Answer {
    const session = connection.session!;
    const closes = operation === operations.closeSession;
    const refusal = this.#core.writeRefusal;
    if (refusal !== undefined && !(closes && session.unkept)) {
      const { zxid } = this.#core.nextMoment();
      return { zxid, err: refusal, ...(closes && { ends: true }) };
    }
    if (closes) {
      const { zxid } = this.#core.closeSession(session);
      const answer: Answer = { zxid, err: 0, ends: true };
      const { tree } = this.#core;
      return tree.hasEphemerals(session.id)
        ? { ...answer, inSteps: () => this.#untilEnded(connection) }
        : answer;
    }
    const moment = this.#core.nextMoment();
    const record = read();
    const written = this.#perform(connection, operation, record, moment);
    this.#core.commit(written, moment);
    return answerOf(moment.zxid, 0, operation.reply, written.result);
  }

  /** Until all that the session held is gone, which others may see go. */
  *#untilEnded(connection: ServerConnection): SlicedWork {
    const session = connection.session!;
    while (!this.#core.endMore(session)) {
      // Its end was taken back, or what is left of it has to wait for the disk: nobody can say when.
      if (this.#core.writeRefusal !== undefined)
        return this.#core.drop(connection, 'the disk took no more', 'disk');
      yield;
    }
  }

  #perform(
    connection: ServerConnection,
    operation: Operation,
    record: unknown,
    moment: Moment,
  ): Written<unknown> {
    const { writes } = this.#core;
    const asker = askerOf(connection);
    switch (operation) {
      case operations.create:
      case operations.create2:
        return writes.create(record as Req<typeof operations.create>, 'plain', asker, moment);
      case operations.createContainer:
        return writes.create(record as Req<typeof operations.create>, 'container', asker, moment);
      case operations.createTtl: {
        const request = record as Req<typeof operations.createTtl>;
        return writes.create(request, { ttl: request.ttl }, asker, moment);
      }
      case operations.delete:
        return writes.delete(record as Req<typeof operations.delete>, asker, moment);
      case operations.setData:
        return wrapped(writes.setData(record as Req<typeof operations.setData>, asker, moment));
      case operations.setAcl:
        return wrapped(writes.setAcl(record as Req<typeof operations.setAcl>, asker, moment));
      case operations.multi:
        return writes.multi(this.#fewEnough(record as Req<typeof operations.multi>), asker, moment);
      default:
        throw new Refusal('reconfig-disabled'); // The only write left: this is not an ensemble.
    }
  }

  // Reads, and what concerns the connection alone.

  #read(connection: ServerConnection, operation: Operation, { input }: Request): Answer {
    const { reads, watches } = this.#core;
    const { identities } = connection;
    switch (operation) {
      case operations.ping:
        return this.#ok(undefined, undefined, 'nothing');
      case operations.exists: {
        const { path, watch } = operations.exists.request.read(input);
        try {
          const node = reads.exists(path, identities);
          if (watch) this.#watch(connection, path, () => watches.watchData(path, connection));
          return this.#ok(operations.exists.reply, { stat: statOf(node) }, node);
        } catch (error) {
          const absent = error instanceof Refusal && error.serverCode === errorCodes['no-node'];
          if (absent && watch) this.#watch(connection, path, () => watches.watchData(path, connection));
          throw error;
        }
      }
      case operations.getData: {
        const { path, watch } = operations.getData.request.read(input);
        const node = reads.getData(path, identities);
        if (watch) this.#watch(connection, path, () => watches.watchData(path, connection));
        return this.#ok(operations.getData.reply, { data: node.data, stat: statOf(node) }, node);
      }
      case operations.getChildren:
      case operations.getChildren2: {
        const { path, watch } = operations.getChildren.request.read(input);
        const list = () => this.#children(connection, operation, path, watch);
        const count = this.#core.tree.get(path)?.children?.size ?? 0;
        return count > NAMES_AT_ONCE ? { zxid: -1n, err: 0, later: list } : list();
      }
      case operations.getAcl:
        return this.#ok(
          operation.reply,
          reads.getAcl(operations.getAcl.request.read(input).path, identities),
        );
      case operations.getAllChildrenNumber: {
        const { path } = operations.getAllChildrenNumber.request.read(input);
        return this.#ok(operation.reply, { totalNumber: reads.countDescendants(path, identities) });
      }
      case operations.multiRead: {
        const ops = this.#fewEnough(operations.multiRead.request.read(input));
        return this.#ok(operation.reply, reads.multiRead(ops, identities));
      }
      case operations.sync:
        return this.#ok(operation.reply, operations.sync.request.read(input));
      case operations.whoAmI: {
        const clientInfo = identities.map((identity) => ({
          authScheme: identity.scheme,
          user: userNameOf(identity),
        }));
        return this.#ok(operation.reply, { clientInfo });
      }
      case operations.addWatch: {
        const { path, mode } = operations.addWatch.request.read(input);
        if (mode === addWatchModes.persistent) {
          this.#watch(connection, path, () => watches.watchPersistently(path, connection));
        } else if (mode === addWatchModes['persistent-recursive']) {
          this.#watch(connection, path, () => watches.watchRecursively(path, connection));
        } else throw new Refusal('marshalling-error');
        return this.#ok(operation.reply, { err: 0 });
      }
      case operations.checkWatches:
      case operations.removeWatches: {
        const { path, type } = operations.removeWatches.request.read(input);
        const has = watches.has(path, connection, type);
        if (has === undefined) throw new Refusal('marshalling-error');
        if (!has) throw new Refusal('no-watcher');
        if (operation === operations.removeWatches) watches.remove(path, connection, type);
        return this.#ok();
      }
      case operations.auth:
        return this.#authenticate(connection, operations.auth.request.read(input));
      case operations.sasl:
        // No SASL here: a null token, which clients take for a refusal.
        return answerOf(0n, 0, operation.reply, { token: null });
      default:
        throw new Refusal('unimplemented');
    }
  }

  *#readInSteps(
    connection: ServerConnection,
    operation: Operation,
    { input }: Request,
  ): SlicedResult<Answer | undefined> {
    const { reads } = this.#core;
    const { identities } = connection;
    switch (operation) {
      case operations.getEphemerals: {
        const { prefixPath } = operations.getEphemerals.request.read(input);
        const prefix = prefixPath?.trim() ?? '';
        const { zxid } = this.#core;
        connection.eventsLater = []; // It shows what is there now.
        const ephemerals = yield* reads.getEphemerals(connection.session!.id, prefix);
        if (ephemerals.length <= NAMES_AT_ONCE) return answerOf(zxid, 0, operation.reply, { ephemerals });
        return { zxid, err: 0, inSteps: (out) => writeNames(out, ephemerals) };
      }
      case operations.multiRead: {
        const ops = this.#fewEnough(yield* operations.multiRead.request.readInSteps!(input));
        if (ops.length > OPS_AT_ONCE) yield* reads.prepare(ops, identities);
        const results = reads.multiRead(ops, identities);
        return this.#longAnswer((out) => writeResults(out, results));
      }
      case operations.setWatches:
      case operations.setWatches2:
        return yield* this.#setWatches(connection, {
          persistentWatches: [],
          persistentRecursiveWatches: [],
          ...((yield* operation.request.readInSteps!(input)) as Req<typeof operations.setWatches>),
        });
      default:
        throw new Refusal('unimplemented');
    }
  }

  /** The names are as of now; they are written in steps if they are many. */
  #children(connection: ServerConnection, operation: Operation, path: string, watch: boolean): Answer {
    const { reads, watches } = this.#core;
    const node = reads.getChildren(path, connection.identities);
    if (watch) this.#watch(connection, path, () => watches.watchChildren(path, connection));
    const children = childrenOf(node);
    const stat = operation === operations.getChildren ? undefined : statOf(node);
    if (children.length > NAMES_AT_ONCE)
      return this.#longAnswer((out) => writeNames(out, children, stat), node);
    return this.#ok(operation.reply, { children, stat }, node);
  }

  *#setWatches(
    connection: ServerConnection,
    lists: Req<typeof operations.setWatches2>,
  ): SlicedResult<Answer | undefined> {
    const { count, pathBytes } = sizeOf(lists);
    this.#roomForWatches(connection, count, pathBytes);
    this.#watchesToCome += count;
    try {
      const missed = yield* restoreWatches(this.#core, connection, lists);
      for (const [index, { type, path }] of missed.entries()) {
        if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
        this.#core.notify(connection, type, path, -1n);
      }
    } finally {
      this.#watchesToCome -= count;
    }
    return this.#ok();
  }

  #authenticate(connection: ServerConnection, packet: Req<typeof operations.auth>): Answer {
    const { scheme, auth } = packet;
    if (scheme === 'ip') return { zxid: 0n, err: 0 }; // It is known by its address already.
    if (scheme !== 'digest') return { zxid: 0n, err: errorCodes['auth-failed'], ends: true };
    const identity = digestIdentity(Buffer.from(auth ?? []).toString('utf8'));
    const { superDigest, limits } = this.#core;
    const isSuper =
      superDigest !== undefined && isSameSecret(Buffer.from(identity.id), Buffer.from(superDigest));
    const added = [...(isSuper ? [{ scheme: 'super', id: '' }] : []), identity].filter(
      ({ scheme, id }) => !connection.identities.some((known) => known.scheme === scheme && known.id === id),
    );
    const bytes = [...connection.identities, ...added].reduce(
      (sum, { scheme, id }) => sum + scheme.length + id.length,
      0,
    );
    if (bytes > limits.identityBytesMax) return { zxid: 0n, err: errorCodes['auth-failed'], ends: true };
    connection.identities.push(...added);
    return { zxid: 0n, err: 0 };
  }

  #watch(connection: ServerConnection, path: string, add: () => void): void {
    this.#roomForWatches(connection, 1, path.length);
    add();
  }

  #roomForWatches(connection: ServerConnection, count: number, pathBytes: number): void {
    const { watches, limits } = this.#core;
    if (
      watches.count + this.#watchesToCome + count > limits.watchesMax ||
      watches.countOf(connection) + count > limits.watchesPerConnectionMax ||
      watches.pathBytes + pathBytes > limits.watchBytesMax
    ) {
      throw new Refusal('throttled-op');
    }
  }

  #fewEnough<T>(ops: readonly T[]): readonly T[] {
    if (ops.length > this.#core.limits.multiOpsMax) throw new Refusal('bad-arguments');
    return ops;
  }

  #ok(codec?: Codec<never> | Codec<unknown>, value?: unknown, shows?: Answer['shows']): Answer {
    return answerOf(this.#core.zxid, 0, codec, value, shows);
  }

  /** What one step shows, written in many. */
  #longAnswer(inSteps: (out: JuteWriter) => SlicedWork, shows?: TreeNode): Answer {
    return { zxid: this.#core.zxid, err: 0, shows, inSteps };
  }

  #answer(connection: ServerConnection, xid: number, answer: Answer): SlicedWork | undefined {
    const rest = this.#core.answer(connection, xid, answer);
    connection.lastZxid = answer.zxid;
    return rest;
  }
}

function askerOf({ session, identities }: ServerConnection): Asker {
  return { sessionId: session!.id, identities };
}

/** A vector of names, and a stat if there is one. */
function* writeNames(out: JuteWriter, names: readonly string[], stat?: Stat): SlicedWork {
  out.int(names.length);
  for (const [index, name] of names.entries()) {
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    out.ustring(name);
  }
  if (stat) Stat.write(out, stat);
}

function* writeResults(out: JuteWriter, results: readonly MultiResult[]): SlicedWork {
  for (const [index, result] of results.entries()) {
    if (index % OPS_AT_ONCE === OPS_AT_ONCE - 1) yield;
    if (result.kind === 'getChildren') {
      beginMultiChildren(out);
      yield* writeNames(out, result.children);
    } else writeMultiResult(out, result);
  }
  endMultiResults(out);
}

function wrapped<S>(written: Written<S>): Written<{ stat: S }> {
  return { ...written, result: { stat: written.result } };
}

/** All of one shape, since there is one for each request. */
function answerOf(
  zxid: bigint,
  err: number,
  codec?: Codec<never> | Codec<unknown>,
  value?: unknown,
  shows?: Answer['shows'],
): Answer {
  return { zxid, err, codec: codec as Codec<unknown> | undefined, value, shows };
}
