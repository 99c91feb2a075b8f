import { ProtocolError } from '../protocol/errors.ts';
import type { MultiReadOp, MultiResult } from '../protocol/multi.ts';
import { operations } from '../protocol/operations.ts';
import type { ReplyHeader } from '../protocol/records.ts';
import type { SessionEffect } from './session-io.ts';
import { SessionRequest } from './session-request.ts';

/**
 * Reads that leave as one request, a `multiRead`. They stay the requests they are, with their own names, errors and
 * callers: only the wire has them in one frame, and whatever befalls that frame is told to each of them.
 */
export class GatheredReads extends SessionRequest<readonly MultiReadOp[], readonly MultiResult[]> {
  readonly reads: readonly SessionRequest[];

  constructor(reads: readonly SessionRequest[]) {
    super(operations.multiRead, reads.map(opOf));
    this.reads = reads;
  }

  /** @throws ProtocolError unless there is a result for each read, of its own kind or an error. */
  check(reply: unknown): void {
    const results = reply as readonly MultiResult[];
    const fit =
      results.length === this.record.length &&
      results.every((result, index) =>
        result.kind === 'error' ? result.err !== 0 : result.kind === this.record[index]!.op,
      );
    if (!fit) throw new ProtocolError(`a multiRead of ${this.record.length} reads answered by other results`);
  }
}

/** Whether a `multiRead` can stand for it: it has these two reads alone, and they set no watch there. */
export function isGatherable({ operation, watch }: SessionRequest): boolean {
  return (operation === operations.getData || operation === operations.getChildren) && watch === undefined;
}

/** What stands for a request in the books of its callers: itself, or the reads that went in it. */
export function partsOf(request: SessionRequest): readonly SessionRequest[] {
  return request instanceof GatheredReads ? request.reads : [request];
}

/** Tells each caller the answer to its own request. */
export function tellAnswer(
  effects: SessionEffect[],
  request: SessionRequest,
  { err, zxid }: Pick<ReplyHeader, 'err' | 'zxid'>,
  reply: unknown,
): void {
  if (!(request instanceof GatheredReads)) return tell(effects, request, { err, zxid, reply });
  const results = reply as readonly MultiResult[] | undefined;
  request.reads.forEach((read, index) => {
    const result = results?.[index];
    tell(effects, read, { err: result?.kind === 'error' ? result.err : err, zxid, reply: result });
  });
}

function tell(
  effects: SessionEffect[],
  request: SessionRequest,
  { err, zxid, reply }: { readonly err: number; readonly zxid: bigint; readonly reply: unknown },
): void {
  request.stage = 'done';
  if (request.abandoned) return;
  effects.push(
    err === 0
      ? { kind: 'request-answered', request, reply, zxid }
      : { kind: 'request-refused', request, serverCode: err },
  );
}

function opOf({ operation, record }: SessionRequest): MultiReadOp {
  const op = operation === operations.getData ? 'getData' : 'getChildren';
  return { op, request: record as MultiReadOp['request'] };
}
