import { rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { AncestorHold } from './held-variable.ts';

const ANSWER_MS_MAX = 2_000;
const CHARACTERS_MAX = 64 * 1024;

/**
 * Lets the runs inside a run's command have its credentials, which are not in the command's environment: at a socket in
 * the run's folder, that only this user can enter. Where no socket can be made they have none.
 */
export async function offerCredentials(folder: string, auth: string): Promise<{ close(): void } | undefined> {
  const path = fileIn(folder);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(JSON.stringify({ auth }));
  });
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
  } catch {
    return undefined;
  }
  server.on('error', () => {});
  server.unref();
  return {
    close() {
      server.close();
      rmSync(path, { force: true });
    },
  };
}

/**
 * The credentials of the nearest run above that has any; undefined if none has, or none answers in time. All are asked
 * at once, so that one that does not answer delays the others' answers by no more than that time.
 *
 * @throws the signal's reason.
 */
export async function credentialsOf(
  ancestors: readonly AncestorHold[],
  signal?: AbortSignal,
): Promise<string | undefined> {
  const asking = new AbortController();
  const until = AbortSignal.any([asking.signal, ...(signal ? [signal] : [])]);
  try {
    const answers = ancestors
      .toReversed()
      .flatMap(({ door }) => (door === undefined ? [] : [answerAt(fileIn(dirname(door)), until)]));
    for (const answer of answers) {
      const auth = authFrom(await answer);
      signal?.throwIfAborted();
      if (auth !== undefined) return auth;
    }
    return undefined;
  } finally {
    asking.abort();
  }
}

function fileIn(folder: string): string {
  return join(folder, 'credentials');
}

/** What is there to read; as much as there was when the signal fired. */
function answerAt(path: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(path);
    const giveUp = () => void socket.destroy();
    const cancel = systemClock.at(systemClock.nowMs() + ANSWER_MS_MAX, giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
    socket.setEncoding('utf8');
    socket.on('error', () => {}); // It has none to give, has ended, or is another user's.
    socket.on('data', (text: string) => {
      answer += text;
      if (answer.length > CHARACTERS_MAX) socket.destroy();
    });
    socket.on('close', () => {
      cancel();
      signal.removeEventListener('abort', giveUp);
      resolve(answer);
    });
  });
}

function authFrom(answer: string): string | undefined {
  try {
    const { auth } = JSON.parse(answer) as { readonly auth?: unknown };
    return typeof auth === 'string' && auth !== '' ? auth : undefined;
  } catch {
    return undefined;
  }
}
