/** What can be shown as JSON. A bigint is shown as the number it is, as Java shows a long. */
export type Json =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly Json[]
  | JsonObject
  | JsonItems
  | JsonEntries;

export interface JsonObject {
  readonly [name: string]: Json;
}

/** A list that may be very long: its items are made when they are shown. */
export class JsonItems {
  readonly items: Iterable<Json>;

  constructor(items: Iterable<Json>) {
    this.items = items;
  }
}

/** An object of which the same is true. */
export class JsonEntries {
  readonly entries: Iterable<readonly [name: string, value: Json]>;

  constructor(entries: Iterable<readonly [name: string, value: Json]>) {
    this.entries = entries;
  }
}

/** JSON for people and programs. `JSON.stringify` refuses bigints, which session ids and zxids are. */
export function jsonText(value: Json): string {
  return [...jsonParts(value)].join('');
}

/** The same in small parts, so that others may have their turn in between. */
export function* jsonParts(value: Json, indent = ''): Generator<string> {
  if (typeof value === 'bigint') return yield value.toString();
  if (value === null || typeof value !== 'object') return yield JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) return yield* bracketed('[]', indent, items(value as readonly Json[], inner));
  if (value instanceof JsonItems) return yield* bracketed('[]', indent, items(value.items, inner));
  const entries = value instanceof JsonEntries ? value.entries : Object.entries(value as JsonObject);
  yield* bracketed('{}', indent, named(entries, inner));
}

/** Each with its first part, and the parts behind it. */
type Line = readonly [first: string, rest: Iterable<string>];

function* items(values: Iterable<Json>, indent: string): Generator<Line> {
  for (const value of values) yield [indent, jsonParts(value, indent)];
}

function* named(entries: Iterable<readonly [string, Json]>, indent: string): Generator<Line> {
  for (const [name, value] of entries) yield [`${indent}${JSON.stringify(name)}: `, jsonParts(value, indent)];
}

function* bracketed(brackets: string, indent: string, lines: Iterable<Line>): Generator<string> {
  let isFirst = true;
  for (const [first, rest] of lines) {
    yield `${isFirst ? `${brackets[0]}\n` : ',\n'}${first}`;
    yield* rest;
    isFirst = false;
  }
  yield isFirst ? brackets : `\n${indent}${brackets[1]}`;
}
