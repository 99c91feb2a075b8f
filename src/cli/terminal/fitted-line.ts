import { displayWidth, truncated } from './display-width.ts';
import { visibleText } from './visible-text.ts';

/** A part of a line, and how much it matters: the least is shortened first. */
export interface LinePart {
  readonly text: string;
  readonly weight: number;
}

/** Fewer columns than this tell nothing. */
const SHORTENED_WIDTH_MIN = 6;

/**
 * The parts as one line of at most `width` columns. What does not fit is taken from the parts that matter least, and
 * shows as an ellipsis there. Texts are made harmless first.
 */
export function fittedLine(parts: readonly LinePart[], width: number): string {
  const texts = parts.map(({ text }) => visibleText(text));
  const leastFirst = parts.map((_, at) => at).sort((a, b) => parts[a]!.weight - parts[b]!.weight);
  for (const at of leastFirst) {
    const excess = displayWidth(joined(texts)) - width;
    if (excess <= 0) break;
    const left = displayWidth(texts[at]!) - excess;
    texts[at] = left >= SHORTENED_WIDTH_MIN ? truncated(texts[at]!, left) : '…';
  }
  return truncated(joined(texts), width);
}

function joined(texts: readonly string[]): string {
  return texts.join('').replaceAll(/…{2,}/g, '…');
}

/** Where someone stands in a queue, the same everywhere: the one whose turn is next is `1st in line`. */
export function placeText(place: number): string {
  const teen = place % 100 >= 11 && place % 100 <= 13;
  const ending = teen ? 'th' : (['th', 'st', 'nd', 'rd'][place % 10] ?? 'th');
  return `${place}${ending} in line`;
}
