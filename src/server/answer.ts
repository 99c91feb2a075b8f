import { errorCodes } from '../protocol/error-codes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import type { JuteWriter } from '../protocol/jute-writer.ts';
import type { Codec } from '../protocol/record.ts';
import { Refusal } from './access.ts';
import type { TreeNode } from './data-tree.ts';
import type { SlicedResult, SlicedWork } from './sliced-work.ts';
import type { NodeChange } from './watch-table.ts';
import type { Change } from './write-operations.ts';

/** What a request has come to: what goes back, what it changed, and what becomes of the connection. */
export interface Answer {
  readonly zxid: bigint;
  readonly err: number;
  /** How the body is written; none if left out. */
  readonly codec?: Codec<unknown> | undefined;
  readonly value?: unknown;
  /** The one node whose state it shows, if it shows no more than that. Left out, it may show anything. */
  readonly shows?: TreeNode | 'nothing' | undefined;
  /** What the request changed: to be committed before the answer is written. */
  readonly change?: Change | undefined;
  /** The connection is ended once this has gone out. */
  readonly ends?: true;
  /** How a long body is written, in the place of the codec. */
  readonly inSteps?: ((out: JuteWriter) => SlicedWork) | undefined;
  /** Events that the client missed while it was away: they go out before the answer. */
  readonly missed?: readonly NodeChange[];
  /** The request takes more than one step. These steps make the answer, in the place of this one. */
  readonly later?: AnswerSteps;
}

/** Undefined if the request has no answer, since its session has ended. */
export type AnswerSteps = SlicedResult<Answer | undefined>;

/** All of one shape, since there is one for each request. */
export function answerOf(
  zxid: bigint,
  err: number,
  codec?: Codec<never> | Codec<unknown>,
  value?: unknown,
  shows?: Answer['shows'],
  change?: Change,
): Answer {
  return { zxid, err, codec: codec as Codec<unknown> | undefined, value, shows, change };
}

/** A refusal, or a record that cannot be read, becomes the answer that says so. */
export function refusalAnswer(error: unknown, zxid: bigint): Answer {
  if (error instanceof Refusal) return answerOf(zxid, error.serverCode);
  if (error instanceof ProtocolError) return answerOf(zxid, errorCodes['marshalling-error']);
  throw error;
}
