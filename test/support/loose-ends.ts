import { setTimeout as delay } from 'node:timers/promises';

const POLL_INTERVAL_MS = 5;
const SETTLE_MS_MAX_DEFAULT = 1_000;

/** What a client, a proxy or a fake server could leave open. */
const SOCKET_KINDS = new Set(['TCPSocketWrap', 'TCPServerWrap', 'TLSWrap']);

/**
 * Sees to it that a test leaves nothing behind: no exception or rejection that nobody caught, no timer and no
 * socket that was not there when it began. Comes first in a test, so that it looks after all else is disposed:
 *
 * ```ts
 * await using _ends = looseEnds();
 * ```
 *
 * A socket has `settleMsMax` to close; once they are, no timer may be left. Both are counted for the whole process, so
 * tests that run at the same time in one process cannot use it.
 */
export function looseEnds(options: { readonly settleMsMax?: number } = {}): AsyncDisposable {
  const { settleMsMax = SETTLE_MS_MAX_DEFAULT } = options;
  const socketsBefore = countSockets();
  const timers = recordTimers();
  const strays: unknown[] = [];
  const onStray = (error: unknown) => void strays.push(error);
  process.on('uncaughtException', onStray);
  process.on('unhandledRejection', onStray);
  return {
    async [Symbol.asyncDispose]() {
      // Sockets first: a server in this process times those that it has ended until they are closed.
      const sockets = await socketsLeft(socketsBefore, settleMsMax);
      timers.stop();
      const left = [...timers.live(), ...sockets];
      process.off('uncaughtException', onStray);
      process.off('unhandledRejection', onStray);
      if (strays.length > 0) throw new AggregateError(strays, `nobody caught: ${strays.join('; ')}`);
      if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
    },
  };
}

/** Waits until there are no more sockets than `before`; what is still too much then is the answer. */
async function socketsLeft(before: Map<string, number>, settleMsMax: number): Promise<string[]> {
  const deadlineMs = performance.now() + settleMsMax;
  for (;;) {
    // Comes before the first look because Node reports what nobody caught only at the end of a turn.
    await delay(POLL_INTERVAL_MS, undefined, { ref: false });
    const left = [...countSockets()]
      .filter(([kind, count]) => count > (before.get(kind) ?? 0))
      .map(([kind, count]) => `${count - (before.get(kind) ?? 0)} ${kind}`);
    if (left.length === 0 || performance.now() >= deadlineMs) return left;
  }
}

function countSockets(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (SOCKET_KINDS.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/**
 * Notes which timers are set and not cleared, and where. `getActiveResourcesInfo` would count the test runner's
 * timers too, which come and go; the runner keeps the real functions from before and is not seen here.
 */
function recordTimers(): { live(): string[]; stop(): void } {
  const { setTimeout: setReal, clearTimeout: clearReal } = globalThis;
  const live = new Map<unknown, Error>();
  const set = (run: (...given: unknown[]) => void, delayMs?: number, ...given: unknown[]) => {
    const timer = setReal(() => {
      live.delete(timer);
      run(...given);
    }, delayMs);
    live.set(timer, new Error('set here'));
    return timer;
  };
  const clear = (timer: Parameters<typeof clearReal>[0]) => {
    live.delete(timer);
    clearReal(timer);
  };
  Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
  return {
    live: () => [...live.values()].map((place) => `a timer set ${placeOf(place)}`),
    stop: () => void Object.assign(globalThis, { setTimeout: setReal, clearTimeout: clearReal }),
  };
}

/** The call of the code under test, or of the test, that set a timer. */
function placeOf({ stack = '' }: Error): string {
  const frames = stack.split('\n').filter((line) => /\/(src|test)\//.test(line));
  return frames.slice(1, 4).join(' <').replaceAll(/\s+/g, ' ').trim();
}
