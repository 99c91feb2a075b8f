import type { Console } from '../console.ts';

const CTRL_C = '\x03';

/**
 * Calls `onKey` for each key that is pressed, without waiting for a line, until disposed. Ctrl-C comes as `'\x03'`,
 * since it makes no signal then. Does nothing where standard input is no terminal.
 */
export function readKeys({ stdin }: Pick<Console, 'stdin'>, onKey: (key: string) => void): Disposable {
  if (!stdin.isTTY) return { [Symbol.dispose]: () => {} };
  const listen = (data: Buffer | string) => {
    for (const key of String(data)) onKey(key);
  };
  stdin.setRawMode(true);
  stdin.on('data', listen);
  stdin.resume();
  return {
    [Symbol.dispose]: () => {
      stdin.off('data', listen);
      stdin.setRawMode(false);
      stdin.pause(); // Otherwise it keeps the process from ending.
    },
  };
}

export function isQuit(key: string): boolean {
  return key === 'q' || key === 'Q' || key === CTRL_C;
}
