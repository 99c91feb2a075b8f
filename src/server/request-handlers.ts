import { errorCodes } from '../protocol/error-codes.ts';
import type { JuteReader } from '../protocol/jute-reader.ts';
import { type Operation, opcodeOfDeleteContainer, operationOf, operations } from '../protocol/operations.ts';
import { RequestHeader } from '../protocol/records.ts';
import { type Answer, type AnswerSteps, answerOf, refusalAnswer } from './answer.ts';
import { ReadRequests } from './read-requests.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ServerState } from './server-state.ts';
import type { SessionEnds } from './session-ends.ts';
import { WriteRequests } from './write-requests.ts';

export interface Request {
  readonly xid: number;
  readonly opcode: number;
  readonly input: JuteReader;
  /** All of it, with the header. */
  readonly frame: Buffer;
}

/** A list of operations that may be longer than this is read in steps. */
const LIST_BYTES_SHORT = 8 * 1024;
/** The same, where there are access lists or identities that take a while to look through. */
const DEAR_LIST_BYTES_SHORT = 1024;
const IDENTITY_COUNT_SHORT = 8;
/** What is longer than this, and has lists in it, is read in steps. */
const FRAME_BYTES_SHORT = 16 * 1024;

/** Handles requests: which operation it is, whether it takes one step or many, and what it comes to. */
export class RequestHandlers {
  readonly #state: ServerState;
  readonly #reads: ReadRequests;
  readonly #writes: WriteRequests;

  constructor(state: ServerState, ends: SessionEnds) {
    this.#state = state;
    this.#reads = new ReadRequests(state);
    this.#writes = new WriteRequests(state, ends);
  }

  /** Undefined if the client has left, and the request would have no effect but its answer. */
  handle(connection: ServerConnection, { xid, opcode, input, frame }: Request): Answer | undefined {
    const { transactions, sessions, requestGate } = this.#state;
    const session = connection.session!;
    const operation = operationOf(opcode);
    const condition =
      operation && requestGate?.(session.id, operation, frame.subarray(RequestHeader.bytesMin));
    if (condition !== undefined) {
      sessions.touch(session, this.#state.clock.nowMs());
      const { zxid } = operation!.writes ? transactions.nextMoment() : transactions;
      return answerOf(zxid, errorCodes[condition]);
    }
    if (opcode === opcodeOfDeleteContainer) {
      return answerOf(transactions.nextMoment().zxid, errorCodes['bad-arguments']);
    }
    if (!operation) return { zxid: -1n, err: errorCodes.unimplemented, ends: true };
    connection.lastOperation = operation.name;
    if (xid >= 0) connection.lastXid = xid;
    if (operation !== operations.auth && operation !== operations.sasl) {
      sessions.touch(session, this.#state.clock.nowMs());
    }
    if (connection.departed && !operation.writes && operation !== operations.auth) return undefined;
    const requests = operation.writes ? this.#writes : this.#reads;
    if (this.#mayBeDear(connection, operation, input)) {
      const later = this.#refusing(requests.inSteps(connection, operation, input));
      return { zxid: -1n, err: 0, later };
    }
    try {
      const answer = requests.handle(connection, operation, input);
      return answer.later ? { ...answer, later: this.#refusing(answer.later) } : answer;
    } catch (error) {
      return refusalAnswer(error, transactions.zxid);
    }
  }

  /** Whether a request may take longer than a step, as far as that can be told before it is read. */
  #mayBeDear({ identities }: ServerConnection, operation: Operation, input: JuteReader): boolean {
    switch (operation) {
      case operations.multi:
      case operations.multiRead: {
        const hasLong = this.#state.tree.longAclCount > 0 || identities.length > IDENTITY_COUNT_SHORT;
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

  *#refusing(steps: AnswerSteps): AnswerSteps {
    try {
      return yield* steps;
    } catch (error) {
      return refusalAnswer(error, this.#state.transactions.zxid);
    }
  }
}
