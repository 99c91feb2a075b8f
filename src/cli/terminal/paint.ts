import { inspect } from 'node:util';
import type { Console } from '../console.ts';

/** What a word is, not how it looks: a screen without colours says the same. */
export type Tone = 'plain' | 'heading' | 'faint' | 'good' | 'warning' | 'bad';

/** Colours text, or leaves it as it is. */
export type Paint = (tone: Tone, text: string) => string;

const STYLES = {
  heading: ['bold'],
  faint: ['dim'],
  good: ['green'],
  warning: ['yellow'],
  bad: ['red', 'bold'],
} as const;

export const unpainted: Paint = (_tone, text) => text;

/** Colours on a terminal, unless NO_COLOR is set (https://no-color.org). */
export function paintFor(stream: { readonly isTTY?: boolean }, env: Console['env']): Paint {
  const plain = !stream.isTTY || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  if (plain) return unpainted;
  return (tone, text) => {
    if (tone === 'plain' || text === '') return text;
    return STYLES[tone].reduce((styled, style) => {
      const [on, off] = inspect.colors[style]!; // Not styleText, which decides by standard output, whatever is written to.
      return `\x1b[${on}m${styled}\x1b[${off}m`;
    }, text);
  };
}
