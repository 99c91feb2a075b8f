/** What can be shown as JSON. A bigint is shown as the number it is, as Java shows a long. */
export type Json = string | number | bigint | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: Json;
}

/** JSON for people and programs. `JSON.stringify` refuses bigints, which session ids and zxids are. */
export function jsonText(value: Json, indent = ''): string {
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return bracketed(
      '[',
      ']',
      indent,
      (value as readonly Json[]).map((entry) => inner + jsonText(entry, inner)),
    );
  }
  const entries = Object.entries(value as JsonObject);
  return bracketed(
    '{',
    '}',
    indent,
    entries.map(([name, entry]) => `${inner}${JSON.stringify(name)}: ${jsonText(entry, inner)}`),
  );
}

function bracketed(open: string, close: string, indent: string, lines: readonly string[]): string {
  return lines.length === 0 ? `${open}${close}` : `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}
