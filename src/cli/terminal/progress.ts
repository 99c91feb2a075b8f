import { type Clock, systemClock } from '../../base/clock.ts';
import type { Console } from '../console.ts';
import { truncated } from './display-width.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const SHOWN_AFTER_MS = 500;
const FRAME_MS = 100;
const CLEAR_LINE = '\r\x1b[K';

/** Tells the one who waits what is going on. */
export type Tell = (what: string) => void;

/**
 * Runs something that may take a while. On a terminal a line on standard error says what is being done, from half a
 * second on, and goes away with it; elsewhere nothing is written.
 */
export async function withProgress<T>(
  { stderr }: Pick<Console, 'stderr'>,
  what: string,
  run: (tell: Tell) => Promise<T>,
  clock: Clock = systemClock,
): Promise<T> {
  if (!stderr.isTTY) return run(() => {});
  const startedAtMs = clock.nowMs();
  let text = what;
  let frame = 0;
  let drawn = false;
  const draw = () => {
    const seconds = Math.floor((clock.nowMs() - startedAtMs) / 1_000);
    const line = `${FRAMES[frame++ % FRAMES.length]} ${text}${seconds > 0 ? ` (${seconds} s)` : ''}`;
    stderr.write(`${CLEAR_LINE}${truncated(line, (stderr.columns || 80) - 1)}`);
    drawn = true;
    cancel = clock.at(clock.nowMs() + FRAME_MS, draw);
  };
  let cancel = clock.at(startedAtMs + SHOWN_AFTER_MS, draw);
  try {
    return await run((next) => {
      text = next;
    });
  } finally {
    cancel();
    if (drawn) stderr.write(CLEAR_LINE);
  }
}
