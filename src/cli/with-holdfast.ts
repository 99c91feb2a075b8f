import type { Holdfast } from '../locks/holdfast.ts';
import { type ConnectionFlags, connectWith } from './connection.ts';
import type { Console } from './console.ts';
import { type Tell, withProgress } from './terminal/progress.ts';

/** Connects, does something, and closes; on a terminal, says what if it takes long. */
export async function withHoldfast<T>(
  console: Console,
  options: ConnectionFlags,
  what: string,
  run: (holdfast: Holdfast, tell: Tell) => Promise<T>,
): Promise<T> {
  return withProgress(console, 'connecting', async (tell) => {
    await using holdfast = await connectWith(options);
    tell(what);
    return await run(holdfast, tell);
  });
}
