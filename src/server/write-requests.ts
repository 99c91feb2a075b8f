import { errorCodes } from '../protocol/error-codes.ts';
import type { JuteReader } from '../protocol/jute-reader.ts';
import { type Operation, operations } from '../protocol/operations.ts';
import type { ValueOf } from '../protocol/record.ts';
import { Refusal } from './access.ts';
import { type Answer, type AnswerSteps, answerOf } from './answer.ts';
import type { Moment } from './data-tree.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { SessionEnds } from './session-ends.ts';
import { OPS_AT_ONCE } from './sliced-work.ts';
import type { Asker, Written } from './write-operations.ts';

type Req<O extends Operation> = ValueOf<O['request']>;

/** The writes: each takes the next number, even if it is refused, then reads its record and changes the tree. */
export class WriteRequests {
  readonly #state: ServerState;
  readonly #ends: SessionEnds;

  constructor(state: ServerState, ends: SessionEnds) {
    this.#state = state;
    this.#ends = ends;
  }

  /** `read` gives the record if it was read in steps. @throws Refusal or ProtocolError; then nothing has changed. */
  handle(
    connection: ServerConnection,
    operation: Operation,
    input: JuteReader,
    read?: () => unknown,
  ): Answer {
    const { transactions } = this.#state;
    const session = connection.session!;
    const closes = operation === operations.closeSession;
    if (transactions.fault !== undefined && !(closes && session.unkept)) {
      const { zxid } = transactions.nextMoment();
      return { zxid, err: errorCodes['not-read-only'], ...(closes && { ends: true }) };
    }
    if (closes) {
      const change = this.#ends.end(session, 'closed');
      return { zxid: change.moment.zxid, err: 0, change, ends: true };
    }
    const moment = transactions.nextMoment();
    const record = read ? read() : operation.request.read(input);
    const written = this.#perform(connection, operation, record, moment);
    return answerOf(moment.zxid, 0, operation.reply, written.result, undefined, { written, moment });
  }

  /** As `handle`: reads and prepares in steps, and writes in the last. Undefined if the session has ended. */
  *inSteps(connection: ServerConnection, operation: Operation, input: JuteReader): AnswerSteps {
    yield;
    let record: unknown;
    let fault: unknown;
    try {
      record = yield* operation.request.readInSteps!(input);
      if (operation === operations.multi) {
        const ops = record as Req<typeof operations.multi>;
        if (ops.length > OPS_AT_ONCE && ops.length <= this.#state.limits.multiOpsMax)
          yield* this.#state.writes.prepare(ops, askerOf(connection));
      }
    } catch (error) {
      fault = error;
    }
    if (connection.session!.over) return undefined;
    return this.handle(connection, operation, input, () => {
      if (fault !== undefined) throw fault;
      return record;
    });
  }

  #perform(
    connection: ServerConnection,
    operation: Operation,
    record: unknown,
    moment: Moment,
  ): Written<unknown> {
    const { writes } = this.#state;
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
        return writes.multi(record as Req<typeof operations.multi>, asker, moment);
      default:
        throw new Refusal('reconfig-disabled'); // The only write left: this is not an ensemble.
    }
  }
}

function askerOf({ session, identities }: ServerConnection): Asker {
  return { sessionId: session!.id, identities };
}

function wrapped<S>(written: Written<S>): Written<{ stat: S }> {
  return { ...written, result: { stat: written.result } };
}
