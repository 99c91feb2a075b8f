import { ProtocolError } from './errors.ts';
import type { JuteReader } from './jute-reader.ts';
import type { JuteWriter } from './jute-writer.ts';
import { type Codec, nothing, type ValueOf } from './record.ts';
import {
  CheckVersionRequest,
  Create2Response,
  CreateRequest,
  CreateResponse,
  CreateTtlRequest,
  DeleteRequest,
  ErrorResponse,
  GetChildrenResponse,
  GetDataResponse,
  MultiHeader,
  PathWatchRequest,
  SetDataRequest,
  StatResponse,
} from './records.ts';

// multi and multiRead are lists of { header, record } behind each other, ended by a header that says done.

const writeOps = {
  create: { opcode: 1, codec: CreateRequest },
  delete: { opcode: 2, codec: DeleteRequest },
  setData: { opcode: 5, codec: SetDataRequest },
  check: { opcode: 13, codec: CheckVersionRequest },
  create2: { opcode: 15, codec: CreateRequest },
  createContainer: { opcode: 19, codec: CreateRequest },
  createTtl: { opcode: 21, codec: CreateTtlRequest },
} as const;

const readOps = {
  getData: { opcode: 4, codec: PathWatchRequest },
  getChildren: { opcode: 8, codec: PathWatchRequest },
} as const;

type OpsOf<Table extends Record<string, { readonly codec: Codec<never> | Codec<unknown> }>> = {
  [K in keyof Table]: { readonly op: K; readonly request: ValueOf<Table[K]['codec']> };
}[keyof Table];

/** One operation inside a `multi`, as it goes over the wire. */
export type MultiOp = OpsOf<typeof writeOps>;
/** One operation inside a `multiRead`, as it goes over the wire. */
export type MultiReadOp = OpsOf<typeof readOps>;

/**
 * One result. Its kind is the server's: ZooKeeper 3.8.0 answers a create2 inside a multi as `create`, and
 * every version answers createContainer and createTtl as `create2`.
 */
export type MultiResult =
  | ({ readonly kind: 'create' } & ValueOf<typeof CreateResponse>)
  | ({ readonly kind: 'create2' } & ValueOf<typeof Create2Response>)
  | ({ readonly kind: 'setData' } & ValueOf<typeof StatResponse>)
  | ({ readonly kind: 'getData' } & ValueOf<typeof GetDataResponse>)
  | ({ readonly kind: 'getChildren' } & ValueOf<typeof GetChildrenResponse>)
  | { readonly kind: 'delete' }
  | { readonly kind: 'check' }
  | ({ readonly kind: 'error' } & ValueOf<typeof ErrorResponse>);

const results = {
  create: { opcode: 1, codec: CreateResponse },
  delete: { opcode: 2, codec: nothing },
  getData: { opcode: 4, codec: GetDataResponse },
  setData: { opcode: 5, codec: StatResponse },
  getChildren: { opcode: 8, codec: GetChildrenResponse },
  check: { opcode: 13, codec: nothing },
  create2: { opcode: 15, codec: Create2Response },
  error: { opcode: -1, codec: ErrorResponse },
} as const;

const OPS_PER_STEP = 32;
const END = { type: -1, done: true, err: -1 } as const;

function listOf<Item>(
  writeItem: (out: JuteWriter, item: Item) => void,
  readItem: (input: JuteReader, header: ValueOf<typeof MultiHeader>) => Item,
  readItemInSteps?: (
    input: JuteReader,
    header: ValueOf<typeof MultiHeader>,
  ) => Generator<undefined, Item, undefined>,
): Codec<readonly Item[]> {
  return {
    bytesMin: MultiHeader.bytesMin,
    write(out, items) {
      for (const item of items) writeItem(out, item);
      MultiHeader.write(out, END);
    },
    read(input) {
      const items: Item[] = [];
      for (;;) {
        const header = MultiHeader.read(input);
        if (header.done) return items;
        items.push(readItem(input, header));
      }
    },
    ...(readItemInSteps && {
      *readInSteps(input) {
        const items: Item[] = [];
        for (;;) {
          const header = MultiHeader.read(input);
          if (header.done) return items;
          items.push(yield* readItemInSteps(input, header));
          if (items.length % OPS_PER_STEP === 0) yield;
        }
      },
    }),
  };
}

type Row = { readonly opcode: number; readonly codec: Codec<unknown> };

function opsFrom<Op extends { readonly op: string; readonly request: unknown }>(
  table: Record<Op['op'], Row>,
  what: string,
): Codec<readonly Op[]> {
  const names = new Map(Object.entries<Row>(table).map(([name, row]) => [row.opcode, name as Op['op']]));
  const opOf = ({ type }: ValueOf<typeof MultiHeader>): Op['op'] => {
    const op = names.get(type);
    if (op === undefined) throw new ProtocolError(`opcode ${type} inside a ${what}`);
    return op;
  };
  return listOf<Op>(
    (out, { op, request }) => {
      const row = table[op as Op['op']];
      MultiHeader.write(out, { type: row.opcode, done: false, err: -1 });
      row.codec.write(out, request);
    },
    (input, header) => {
      const op = opOf(header);
      return { op, request: table[op].codec.read(input) } as Op;
    },
    function* (input, header) {
      const op = opOf(header);
      const { codec } = table[op];
      return { op, request: codec.readInSteps ? yield* codec.readInSteps(input) : codec.read(input) } as Op;
    },
  );
}

const kinds = new Map(
  Object.entries(results).map(([kind, row]) => [row.opcode as number, kind as keyof typeof results]),
);

/** Writes one result of the list; the list is ended by `endMultiResults`. */
export function writeMultiResult(out: JuteWriter, result: MultiResult): void {
  const row: Row = results[result.kind];
  const err = result.kind === 'error' ? result.err : 0;
  MultiHeader.write(out, { type: row.opcode, done: false, err });
  row.codec.write(out, result);
}

/** Writes what comes before the children of a `getChildren`: they follow, as a vector of strings. */
export function beginMultiChildren(out: JuteWriter): void {
  MultiHeader.write(out, { type: results.getChildren.opcode, done: false, err: 0 });
}

export function endMultiResults(out: JuteWriter): void {
  MultiHeader.write(out, END);
}

const resultList = listOf<MultiResult>(writeMultiResult, (input, header) => {
  const kind = kinds.get(header.type);
  if (kind === undefined) throw new ProtocolError(`result of type ${header.type} inside a multi`);
  const body = results[kind].codec.read(input);
  return { kind, ...body } as MultiResult;
});

export const MultiRequest: Codec<readonly MultiOp[]> = opsFrom<MultiOp>(writeOps, 'multi');
export const MultiReadRequest: Codec<readonly MultiReadOp[]> = opsFrom<MultiReadOp>(readOps, 'multiRead');
export const MultiResponse: Codec<readonly MultiResult[]> = resultList;
export const MultiReadResponse: Codec<readonly MultiResult[]> = resultList;
