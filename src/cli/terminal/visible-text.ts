/**
 * Text that somebody else chose, made harmless to look at: what would move the cursor, change colours, break the line,
 * turn the reading direction or hide is written out (`\n`, `\x1b`, `\u{202e}`). Everything else stays as it is.
 */
export function visibleText(text: string): string {
  return text.replaceAll(UNSEEN, writtenOut);
}

/** Control, format, lone halves of pairs, separators of lines, unassigned and private characters. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u{115f}\u{1160}\u{3164}\u{ffa0}]/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function writtenOut(character: string): string {
  const code = character.codePointAt(0)!;
  return (
    SHORT[character] ??
    (code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`)
  );
}

/** As `visibleText`, on one line: what goes to a log must stay one line of it, whatever a name or an answer has in it. */
export function oneLine(text: string): string {
  return visibleText(text.trim().replaceAll(/\s*[\r\n]+\s*/g, ' '));
}

/** JSON whose texts are the same to programs, and cannot turn the reading direction of a terminal or hide in it. */
export function visibleJson(json: string): string {
  return json.replaceAll(UNSEEN, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
