import { ProtocolError } from './errors.ts';
import type { JuteReader } from './jute-reader.ts';
import type { JuteWriter } from './jute-writer.ts';

/** How one kind of value is written and read. Methods, so that a codec of a part fits where a whole is asked. */
export interface Codec<T> {
  /** The fewest bytes a value can take: what bounds a vector's count. */
  readonly bytesMin: number;
  /** The method of reader and writer that this codec is nothing but a name for. */
  readonly direct?: 'int' | 'long' | 'boolean' | 'buffer';
  write(out: JuteWriter, value: T): void;
  read(input: JuteReader): T;
  /** As `read`, in small steps: for what may have very many parts, where somebody waits for them. */
  readInSteps?(input: JuteReader): Generator<undefined, T, undefined>;
}

/** How many parts are read in a step. */
const PARTS_PER_STEP = 128;

export type ValueOf<C> = C extends Codec<infer T> ? T : never;

export const int: Codec<number> = {
  bytesMin: 4,
  direct: 'int',
  write: (out, value) => out.int(value),
  read: (input) => input.int(),
};

export const long: Codec<bigint> = {
  bytesMin: 8,
  direct: 'long',
  write: (out, value) => out.long(value),
  read: (input) => input.long(),
};

export const boolean: Codec<boolean> = {
  bytesMin: 1,
  direct: 'boolean',
  write: (out, value) => out.boolean(value),
  read: (input) => input.boolean(),
};

/** Null and empty are different values, and both live in a node. */
export const buffer: Codec<Uint8Array | null> = {
  bytesMin: 4,
  direct: 'buffer',
  write: (out, value) => out.buffer(value),
  read: (input) => input.buffer(),
};

export const nullableUstring: Codec<string | null> = {
  bytesMin: 4,
  write: (out, value) => out.ustring(value),
  read: (input) => input.ustring(),
};

export const ustring: Codec<string> = {
  bytesMin: 4,
  write: (out, value) => out.ustring(value),
  read: (input) => input.ustring() ?? missing('string'),
};

export function nullableVector<T>(element: Codec<T>): Codec<readonly T[] | null> {
  return {
    bytesMin: 4,
    write(out, values) {
      if (values === null) return out.int(-1);
      out.int(values.length);
      for (const value of values) element.write(out, value);
    },
    read(input) {
      const count = input.count(element.bytesMin);
      if (count === null) return null;
      const values = new Array<T>(count);
      for (let index = 0; index < count; index++) values[index] = element.read(input);
      return values;
    },
    *readInSteps(input) {
      const count = input.count(element.bytesMin);
      if (count === null) return null;
      const values = new Array<T>(count);
      for (let index = 0; index < count; index++) {
        if (index % PARTS_PER_STEP === PARTS_PER_STEP - 1) yield;
        values[index] = element.read(input);
      }
      return values;
    },
  };
}

export function vector<T>(element: Codec<T>): Codec<readonly T[]> {
  const nullable = nullableVector(element);
  return {
    bytesMin: 4,
    write: (out, values) => nullable.write(out, values),
    read: (input) => nullable.read(input) ?? missing('vector'),
    *readInSteps(input) {
      return (yield* nullable.readInSteps!(input)) ?? missing('vector');
    },
  };
}

const REMEMBERED_BYTES_MAX = 256;

/**
 * As `codec`, for values of which nearly all are the same: what was read last is handed out again if the same bytes
 * come again. For values that nobody changes.
 */
export function remembering<T>(codec: Codec<T>): Codec<T> {
  let last: { readonly bytes: Buffer; readonly value: T } | undefined;
  return {
    bytesMin: codec.bytesMin,
    write: (out, value) => codec.write(out, value),
    read(input) {
      if (last && input.skipIfNext(last.bytes)) return last.value;
      const before = input.remaining;
      const value = codec.read(input);
      const bytes = before - input.remaining;
      if (bytes <= REMEMBERED_BYTES_MAX) last = { bytes: input.previous(bytes), value };
      return value;
    },
    ...(codec.readInSteps && { readInSteps: codec.readInSteps }),
  };
}

/** A record is its fields, in wire order: the table is the format's only description. */
export function record<const F extends Record<string, Codec<any>>>(
  fields: F,
): Codec<{ readonly [K in keyof F]: ValueOf<F[K]> }> {
  const codec = straightCodec(fields) ?? loopedCodec(fields);
  const columns: [string, Codec<any>][] = Object.entries(fields);
  if (!columns.some(([, column]) => column.readInSteps)) return codec;
  return {
    ...codec,
    *readInSteps(input) {
      const row: Record<string, unknown> = {};
      for (const [name, column] of columns)
        row[name] = column.readInSteps ? yield* column.readInSteps(input) : column.read(input);
      return row as never;
    },
  };
}

type Columns = Readonly<Record<string, Codec<any>>>;

/**
 * The codec of a table as a function of its own for each direction, field after field: what a person would write by
 * hand, made out of the table. A loop over columns is shared by all records, so that no compiler can know what it
 * reads. Undefined where code may not be made of text (`--disallow-code-generation-from-strings`).
 */
export function straightCodec(fields: Columns): Codec<any> | undefined {
  const codecs = Object.values(fields);
  // Names are those of the tables in this program, and quoted.
  const columns = Object.entries(fields).map(([name, { direct }], index) => {
    const key = JSON.stringify(name);
    return direct
      ? { write: `out.${direct}(row[${key}]);`, read: `[${key}]: input.${direct}()` }
      : { write: `c${index}.write(out, row[${key}]);`, read: `[${key}]: c${index}.read(input)` };
  });
  const text = `
    const [${codecs.map((_, index) => `c${index}`).join(', ')}] = codecs;
    return {
      bytesMin,
      write(out, row) { ${columns.map(({ write }) => write).join(' ')} },
      read(input) { return { ${columns.map(({ read }) => read).join(', ')} }; },
    };`;
  try {
    return new Function('codecs', 'bytesMin', text)(codecs, bytesMinOf(codecs)) as Codec<any>;
  } catch (error) {
    if (error instanceof EvalError) return undefined;
    throw error;
  }
}

/** The same by going through the table each time. */
export function loopedCodec(fields: Columns): Codec<any> {
  const columns = Object.entries(fields);
  return {
    bytesMin: bytesMinOf(Object.values(fields)),
    write(out, row) {
      for (const [name, codec] of columns) codec.write(out, row[name]);
    },
    read(input) {
      const row: Record<string, unknown> = {};
      for (const [name, codec] of columns) row[name] = codec.read(input);
      return row;
    },
  };
}

function bytesMinOf(codecs: readonly Codec<unknown>[]): number {
  return codecs.reduce((sum, { bytesMin }) => sum + bytesMin, 0);
}

/** A body with nothing in it. */
export const nothing: Codec<undefined> = {
  bytesMin: 0,
  write: () => {},
  read: () => undefined,
};

function missing(what: string): never {
  throw new ProtocolError(`null where a ${what} is required`);
}
