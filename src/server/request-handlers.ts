import { isSameSecret } from '../base/hash.ts';
import { addWatchModes, type NodeEventType } from '../protocol/constants.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import type { JuteReader } from '../protocol/jute-reader.ts';
import {
  type Operation,
  opcodeOfDeleteContainer,
  operationOf,
  operations,
  xids,
} from '../protocol/operations.ts';
import type { Codec, ValueOf } from '../protocol/record.ts';
import { digestIdentity, Refusal, userNameOf } from './access.ts';
import { type DataTree, type Moment, statOf, type TreeNode } from './data-tree.ts';
import { childrenOf, type ReadOperations } from './read-operations.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerLimits } from './server-limits.ts';
import type { ServerSession, SessionTable } from './session-table.ts';
import { restoreWatches } from './set-watches.ts';
import type { WatchTable } from './watch-table.ts';
import type { WriteOperations, Written } from './write-operations.ts';

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
  answer(connection: ServerConnection, xid: number, answer: Answer): void;
}

type Req<O extends Operation> = ValueOf<O['request']>;

/** What each operation does: decode, perform, answer. The rules themselves are in the read and write operations. */
export class RequestHandlers {
  readonly #core: HandlerContext;

  constructor(core: HandlerContext) {
    this.#core = core;
  }

  handle(connection: ServerConnection, request: Request): void {
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
    // A ping is answered with the xid of pings, whatever it came with.
    const answered = operation === operations.ping ? xids.ping : xid;
    this.#answer(connection, answered, this.#performed(connection, operation, request));
  }

  /** The answer; a refusal, or a record that cannot be read, becomes the one that says so. */
  #performed(connection: ServerConnection, operation: Operation, request: Request): Answer {
    try {
      return operation.writes
        ? this.#write(connection, operation, request)
        : this.#read(connection, operation, request);
    } catch (error) {
      if (error instanceof Refusal) return answerOf(this.#core.zxid, error.serverCode);
      if (error instanceof ProtocolError) return answerOf(this.#core.zxid, errorCodes['marshalling-error']);
      throw error;
    }
  }

  // Writes: a zxid first, then everything else.

  #write(connection: ServerConnection, operation: Operation, { input }: Request): Answer {
    const session = connection.session!;
    const closes = operation === operations.closeSession;
    const refusal = this.#core.writeRefusal;
    if (refusal !== undefined && !(closes && session.unkept)) {
      const { zxid } = this.#core.nextMoment();
      return { zxid, err: refusal, ...(closes && { ends: true }) };
    }
    if (closes) {
      const { zxid } = this.#core.closeSession(session);
      return { zxid, err: 0, ends: true };
    }
    const moment = this.#core.nextMoment();
    const record = operation.request.read(input);
    const written = this.#perform(connection, operation, record, moment);
    this.#core.commit(written, moment);
    return answerOf(moment.zxid, 0, operation.reply, written.result);
  }

  #perform(
    connection: ServerConnection,
    operation: Operation,
    record: unknown,
    moment: Moment,
  ): Written<unknown> {
    const { writes } = this.#core;
    const asker = { sessionId: connection.session!.id, identities: connection.identities };
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
        const node = reads.getChildren(path, identities);
        if (watch) this.#watch(connection, path, () => watches.watchChildren(path, connection));
        const children = childrenOf(node);
        if (operation === operations.getChildren) return this.#ok(operation.reply, { children }, node);
        return this.#ok(operation.reply, { children, stat: statOf(node) }, node);
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
      case operations.getEphemerals: {
        const { prefixPath } = operations.getEphemerals.request.read(input);
        const prefix = prefixPath?.trim() ?? '';
        return this.#ok(operation.reply, { ephemerals: reads.getEphemerals(connection.session!.id, prefix) });
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
      case operations.setWatches:
      case operations.setWatches2: {
        const none = { persistentWatches: [], persistentRecursiveWatches: [] };
        const lists =
          operation === operations.setWatches
            ? { ...operations.setWatches.request.read(input), ...none }
            : operations.setWatches2.request.read(input);
        this.#roomForWatches(
          connection,
          Object.values(lists).flatMap((list) => (Array.isArray(list) ? list : [])),
        );
        for (const { type, path } of restoreWatches(this.#core, connection, lists)) {
          this.#core.notify(connection, type, path, -1n);
        }
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
    this.#roomForWatches(connection, [path]);
    add();
  }

  #roomForWatches(connection: ServerConnection, paths: readonly string[]): void {
    const { watches, limits } = this.#core;
    const bytes = paths.reduce((sum, path) => sum + path.length, 0);
    if (
      watches.count + paths.length > limits.watchesMax ||
      watches.countOf(connection) + paths.length > limits.watchesPerConnectionMax ||
      watches.pathBytes + bytes > limits.watchBytesMax
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

  #answer(connection: ServerConnection, xid: number, answer: Answer): void {
    this.#core.answer(connection, xid, answer);
    connection.lastZxid = answer.zxid;
  }
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
