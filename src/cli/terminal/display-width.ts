/** What a terminal draws in two columns: the scripts of East Asia, full-width forms, and emoji. */
const WIDE =
  /^(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\u{3000}-\u{303e}\u{30fb}-\u{30ff}\u{3200}-\u{33ff}\u{fe30}-\u{fe6f}\u{ff01}-\u{ff60}\u{ffe0}-\u{ffe6}]|\p{Emoji_Presentation}|\p{RI}|.\u{fe0f})/u;
const HALF_WIDTH = /^[\u{ff61}-\u{ffdc}]/u;
const NO_WIDTH = /^\p{M}+$/u;
/** More than this on one letter is not writing; a name of one letter and a thousand accents would fill the screen. */
const GRAPHEME_UNITS_MAX = 16;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** How many columns a terminal needs for it. */
export function displayWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** The text in exactly `width` columns: padded, or cut with an ellipsis. */
export function fitted(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const cut = truncated(text, width);
  const padding = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return align === 'left' ? cut + padding : padding + cut;
}

/** The text in at most `width` columns; what was cut off shows as an ellipsis. */
export function truncated(text: string, width: number): string {
  const whole = tamed(text);
  if (displayWidth(whole) <= width) return whole;
  if (width < 1) return '';
  let cut = '';
  let used = 0;
  for (const { segment } of graphemes.segment(whole)) {
    used += graphemeWidth(segment);
    if (used > width - 1) break;
    cut += segment;
  }
  return `${cut}…`;
}

function graphemeWidth(segment: string): number {
  if (NO_WIDTH.test(segment)) return 0;
  return WIDE.test(segment) && !HALF_WIDTH.test(segment) ? 2 : 1;
}

function tamed(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  let result = '';
  for (const { segment } of graphemes.segment(text)) {
    result += segment.length > GRAPHEME_UNITS_MAX ? '�' : segment;
  }
  return result;
}
