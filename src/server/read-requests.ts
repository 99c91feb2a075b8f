import { isSameSecret } from '../base/hash.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import type { JuteReader } from '../protocol/jute-reader.ts';
import type { JuteWriter } from '../protocol/jute-writer.ts';
import {
  beginMultiChildren,
  endMultiResults,
  type MultiResult,
  writeMultiResult,
} from '../protocol/multi.ts';
import { type Operation, operations } from '../protocol/operations.ts';
import type { Codec, ValueOf } from '../protocol/record.ts';
import { Stat } from '../protocol/records.ts';
import { digestIdentity, type Identity, Refusal, userNameOf } from './access.ts';
import { type Answer, type AnswerSteps, answerOf } from './answer.ts';
import { statOf } from './data-tree.ts';
import { childrenOf } from './read-operations.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import { ITEMS_PER_STEP, OPS_AT_ONCE, type SlicedWork } from './sliced-work.ts';
import { WatchRequests } from './watch-requests.ts';

/** More names than these are written in steps. */
const NAMES_AT_ONCE = 512;

type SetWatchesRequest = ValueOf<(typeof operations)['setWatches']['request']>;

/** The reads, and what concerns the connection alone. */
export class ReadRequests {
  readonly #state: ServerState;
  readonly #watches: WatchRequests;

  constructor(state: ServerState) {
    this.#state = state;
    this.#watches = new WatchRequests(state);
  }

  /** @throws Refusal or ProtocolError. */
  handle(connection: ServerConnection, operation: Operation, input: JuteReader): Answer {
    const { reads } = this.#state;
    const { identities } = connection;
    switch (operation) {
      case operations.ping:
        return this.#ok(undefined, undefined, 'nothing');
      case operations.exists: {
        const { path, watch } = operations.exists.request.read(input);
        try {
          const node = reads.exists(path, identities);
          if (watch) this.#watches.watchData(connection, path);
          return this.#ok(operations.exists.reply, { stat: statOf(node) }, node);
        } catch (error) {
          const absent = error instanceof Refusal && error.serverCode === errorCodes['no-node'];
          if (absent && watch) this.#watches.watchData(connection, path);
          throw error;
        }
      }
      case operations.getData: {
        const { path, watch } = operations.getData.request.read(input);
        const node = reads.getData(path, identities);
        if (watch) this.#watches.watchData(connection, path);
        return this.#ok(operations.getData.reply, { data: node.data, stat: statOf(node) }, node);
      }
      case operations.getChildren:
      case operations.getChildren2: {
        const { path, watch } = operations.getChildren.request.read(input);
        const list = () => this.#children(connection, operation, path, watch);
        const count = this.#state.tree.get(path)?.children?.size ?? 0;
        return count > NAMES_AT_ONCE ? { zxid: -1n, err: 0, later: afterStep(list) } : list();
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
      case operations.addWatch:
        this.#watches.add(connection, operations.addWatch.request.read(input));
        return this.#ok(operation.reply, { err: 0 });
      case operations.checkWatches:
        this.#watches.check(connection, operations.checkWatches.request.read(input));
        return this.#ok();
      case operations.removeWatches:
        this.#watches.remove(connection, operations.removeWatches.request.read(input));
        return this.#ok();
      case operations.auth: {
        const { scheme, auth } = operations.auth.request.read(input);
        const isKnown = scheme === 'ip' || (scheme === 'digest' && this.#authenticate(identities, auth));
        return isKnown ? { zxid: 0n, err: 0 } : { zxid: 0n, err: errorCodes['auth-failed'], ends: true };
      }
      case operations.sasl:
        // No SASL here: a null token, which clients take for a refusal.
        return answerOf(0n, 0, operation.reply, { token: null });
      default:
        throw new Refusal('unimplemented');
    }
  }

  /** As `handle`, for requests that may take more than a step: what they show is of one step. */
  *inSteps(connection: ServerConnection, operation: Operation, input: JuteReader): AnswerSteps {
    yield;
    const { reads, transactions } = this.#state;
    switch (operation) {
      case operations.getEphemerals: {
        const { prefixPath } = operations.getEphemerals.request.read(input);
        const { zxid } = transactions;
        connection.eventsLater = []; // It shows what is there now.
        const ephemerals = yield* reads.getEphemerals(connection.session!.id, prefixPath?.trim() ?? '');
        if (ephemerals.length <= NAMES_AT_ONCE) return answerOf(zxid, 0, operation.reply, { ephemerals });
        return { zxid, err: 0, inSteps: (out) => writeNames(out, ephemerals) };
      }
      case operations.multiRead: {
        const ops = this.#fewEnough(yield* operations.multiRead.request.readInSteps!(input));
        if (ops.length > OPS_AT_ONCE) yield* reads.prepare(ops, connection.identities);
        const results = reads.multiRead(ops, connection.identities);
        return { zxid: transactions.zxid, err: 0, inSteps: (out) => writeResults(out, results) };
      }
      case operations.setWatches:
      case operations.setWatches2: {
        const missed = yield* this.#watches.restore(connection, {
          persistentWatches: [],
          persistentRecursiveWatches: [],
          ...((yield* operation.request.readInSteps!(input)) as SetWatchesRequest),
        });
        return { zxid: transactions.zxid, err: 0, missed };
      }
      default:
        throw new Refusal('unimplemented');
    }
  }

  /** The names are as of now; they are written in steps if they are many. */
  #children(connection: ServerConnection, operation: Operation, path: string, watch: boolean): Answer {
    const node = this.#state.reads.getChildren(path, connection.identities);
    if (watch) this.#watches.watchChildren(connection, path);
    const children = childrenOf(node);
    const stat = operation === operations.getChildren ? undefined : statOf(node);
    if (children.length <= NAMES_AT_ONCE) return this.#ok(operation.reply, { children, stat }, node);
    const { zxid } = this.#state.transactions;
    return { zxid, err: 0, shows: node, inSteps: (out) => writeNames(out, children, stat) };
  }

  /** False if the connection has no room for another identity. */
  #authenticate(identities: Identity[], auth: Uint8Array | null): boolean {
    const identity = digestIdentity(Buffer.from(auth ?? []).toString('utf8'));
    const { superDigest, limits } = this.#state;
    const isSuper =
      superDigest !== undefined && isSameSecret(Buffer.from(identity.id), Buffer.from(superDigest));
    const added = [...(isSuper ? [{ scheme: 'super', id: '' }] : []), identity].filter(
      ({ scheme, id }) => !identities.some((known) => known.scheme === scheme && known.id === id),
    );
    let bytes = 0;
    for (const { scheme, id } of [...identities, ...added]) bytes += scheme.length + id.length;
    if (bytes > limits.identityBytesMax) return false;
    identities.push(...added);
    return true;
  }

  #fewEnough<T>(ops: readonly T[]): readonly T[] {
    if (ops.length > this.#state.limits.multiOpsMax) throw new Refusal('bad-arguments');
    return ops;
  }

  #ok(codec?: Codec<never> | Codec<unknown>, value?: unknown, shows?: Answer['shows']): Answer {
    return answerOf(this.#state.transactions.zxid, 0, codec, value, shows);
  }
}

function* afterStep(make: () => Answer): AnswerSteps {
  yield;
  return make();
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
