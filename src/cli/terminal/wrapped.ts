import { displayWidth } from './display-width.ts';

const INDENT = 4;

/** Text in lines of at most `width` columns, broken between words; a word that is longer has a line of its own. */
export function wrapped(text: string, width: number): string[] {
  // The gaps of a table's columns, and the indent, stay as they are.
  const [, indent = '', rest = ''] = /^(\s*)(.*)$/s.exec(text)!;
  const lines: string[] = [];
  let line = indent;
  let words = 0;
  for (const [, gap = '', word = ''] of rest.matchAll(/(\s*)(\S+)/g)) {
    const longer = words === 0 ? line + word : line + gap + word;
    if (words > 0 && displayWidth(longer) > width) {
      lines.push(line);
      line = indent + ' '.repeat(INDENT) + word;
      words = 1;
    } else {
      line = longer;
      words++;
    }
  }
  return words > 0 || lines.length === 0 ? [...lines, line.trimEnd()] : lines;
}

const COLUMNS = 80;

/** Text for a stream: on a terminal no line is wider than that, and none is broken within a word; as it is elsewhere. */
export function wrappedFor(
  { isTTY, columns }: { readonly isTTY?: boolean; readonly columns?: number },
  text: string,
): string {
  if (!isTTY) return text;
  const lines = text.split('\n').flatMap((line) => wrapped(line, columns || COLUMNS));
  return lines.join('\n');
}
