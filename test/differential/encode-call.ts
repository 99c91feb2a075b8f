import { JuteWriter } from '../../src/protocol/jute-writer.ts';
import { opcodeOfCheck, operationOf } from '../../src/protocol/operations.ts';
import type { Codec } from '../../src/protocol/record.ts';
import { CheckVersionRequest, MultiHeader } from '../../src/protocol/records.ts';
import type { Call } from './scenario.ts';

/** The bytes of a request's body: what a client would send, or what none would. */
export function bodyOf(call: Call, prefix: string, seenZxid: bigint): Buffer {
  const out = new JuteWriter();
  if (call.ops) {
    for (const op of call.ops) {
      MultiHeader.write(out, { type: op.opcode, done: false, err: -1 });
      writeRecord(out, op, prefix, seenZxid);
    }
    MultiHeader.write(out, { type: -1, done: true, err: -1 });
  } else writeRecord(out, call, prefix, seenZxid);
  const body = Buffer.from(out.take());
  if (call.keep !== undefined) return body.subarray(0, Math.floor(body.byteLength * call.keep));
  return Buffer.concat([body, Buffer.alloc(call.junkBytes ?? 0, 0xee)]);
}

function writeRecord(out: JuteWriter, call: Call, prefix: string, seenZxid: bigint): void {
  if (!call.record) return;
  const record = call.seenUntil === undefined ? call.record : { ...call.record, relativeZxid: seenZxid };
  codecOf(call.opcode).write(out, placed(record, prefix));
}

function codecOf(opcode: number): Codec<unknown> {
  if (opcode === opcodeOfCheck) return CheckVersionRequest as Codec<unknown>;
  const operation = operationOf(opcode);
  if (!operation) throw new Error(`opcode ${opcode} has no record`);
  return operation.request;
}

/** Puts the scenario's part of the tree where its paths say ~. */
function placed(value: unknown, prefix: string): unknown {
  if (typeof value === 'string') {
    if (!value.startsWith('~')) return value;
    return prefix + value.slice(1) || '/';
  }
  if (Array.isArray(value)) return value.map((each) => placed(each, prefix));
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, placed(each, prefix)]));
}
