import { ProtocolError } from './errors.ts';
import type { JuteReader } from './jute-reader.ts';
import type { JuteWriter } from './jute-writer.ts';

/** How one kind of value is written and read. Methods, so that a codec of a part fits where a whole is asked. */
export interface Codec<T> {
  /** The fewest bytes a value can take: what bounds a vector's count. */
  readonly bytesMin: number;
  write(out: JuteWriter, value: T): void;
  read(input: JuteReader): T;
}

export type ValueOf<C> = C extends Codec<infer T> ? T : never;

export const int: Codec<number> = {
  bytesMin: 4,
  write: (out, value) => out.int(value),
  read: (input) => input.int(),
};

export const long: Codec<bigint> = {
  bytesMin: 8,
  write: (out, value) => out.long(value),
  read: (input) => input.long(),
};

export const boolean: Codec<boolean> = {
  bytesMin: 1,
  write: (out, value) => out.boolean(value),
  read: (input) => input.boolean(),
};

/** Null and empty are different values, and both live in a node. */
export const buffer: Codec<Uint8Array | null> = {
  bytesMin: 4,
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
  };
}

export function vector<T>(element: Codec<T>): Codec<readonly T[]> {
  const nullable = nullableVector(element);
  return {
    bytesMin: 4,
    write: (out, values) => nullable.write(out, values),
    read: (input) => nullable.read(input) ?? missing('vector'),
  };
}

/** A record is its fields, in wire order: the table is the format's only description. */
export function record<const F extends Record<string, Codec<any>>>(
  fields: F,
): Codec<{ readonly [K in keyof F]: ValueOf<F[K]> }> {
  type Row = { -readonly [K in keyof F]: ValueOf<F[K]> };
  const columns = Object.entries(fields) as [keyof F, F[keyof F]][];
  return {
    bytesMin: columns.reduce((sum, [, codec]) => sum + codec.bytesMin, 0),
    write(out, row) {
      for (const [name, codec] of columns) codec.write(out, row[name]);
    },
    read(input) {
      const row = {} as Row;
      for (const [name, codec] of columns) row[name] = codec.read(input);
      return row;
    },
  };
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
