// What every peer written in TypeScript shares: it reads orders from standard input, one line each, measures, and
// answers with one line of JSON. CuratorLocks.java and kazoo-locks.py understand the same lines.
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, LockKind } from '../orders.ts';

/** A library under one face. Each is used as its own documentation says. */
export interface LockDriver {
  /** `apart`: as if it were another process's, where sessions of one process know of each other. */
  open(options?: { readonly apart: boolean }): Promise<LockSession>;
}

/** One connection to the servers. */
export interface LockSession {
  /** For one task. What it gives takes the lock, and gives in turn what lets go of it. */
  lock(kind: LockKind, name: string): TakeLock;
  close(): Promise<unknown>;
}

/**
 * Who stands in a line stays there until it holds. Who asks again and again has no place to lose, and gives up at
 * `untilMs`, with undefined: otherwise the last of a crowd would ask for minutes.
 */
export type TakeLock = (cycle: number, untilMs: number) => Promise<LetGo | undefined>;
export type LetGo = () => Promise<unknown>;

/** One read in ten cycles is a write, and not of all tasks at the same time. */
export const isWriteCycle = (task: number, cycle: number) => (task + cycle) % 10 === 0;

/** Five locks for a library that takes only one at a time: in one order for all, so that no two of them wait for each other; let go of in the reverse order. */
export function oneByOne(takes: readonly TakeLock[]): TakeLock {
  return async (cycle, untilMs) => {
    const letGos: LetGo[] = [];
    const letGoOfAll = async () => {
      for (const letGo of letGos.reverse()) await letGo();
    };
    for (const take of takes) {
      const letGo = await take(cycle, untilMs);
      if (!letGo) {
        await letGoOfAll();
        return undefined;
      }
      letGos.push(letGo);
    }
    return letGoOfAll;
  };
}

const ANSWERED_LATENCIES_MAX = 20_000;

export async function serveOrders(driver: LockDriver): Promise<never> {
  const sessions: LockSession[] = [];
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const say = (answer: Answer | 'ready') => console.log(JSON.stringify(answer));
  say('ready');
  for (;;) {
    const { value, done } = await lines.next();
    if (done) process.exit(0);
    const order = parseOrder(value);
    if (order.text('order') === 'queue') {
      await serveQueue(driver, order, say, async () => void (await lines.next()));
      continue;
    }
    if (order.text('order') === 'hand-overs') {
      say(await handOvers(driver, order));
      continue;
    }
    while (sessions.length < order.count('sessions')) sessions.push(await driver.open());
    say(await cycles(sessions, order));
  }
}

interface Order {
  text(word: string): string;
  count(word: string): number;
}

function parseOrder(line: string): Order {
  const words = new Map(line.split(' ').map((word) => word.split('=') as [string, string]));
  const text = (word: string) => {
    const value = words.get(word);
    if (value === undefined) throw new Error(`no ${word} in ${line}`);
    return value;
  };
  return { text, count: (word) => Number(text(word)) };
}

/** Tasks take and let go until the time is over; what was begun then is finished, and counted. */
async function cycles(sessions: readonly LockSession[], order: Order): Promise<Answer> {
  const acquireMs: number[] = [];
  const startedAtMs = performance.now();
  const endsAtMs = startedAtMs + order.count('sliceMs');
  const task = async (index: number) => {
    const session = sessions[index % order.count('sessions')]!;
    const take = session.lock(
      order.text('lock') as LockKind,
      `${order.text('name')}-${index % order.count('locks')}`,
    );
    let cycle = index;
    // Once at least: a crowd whose last come when the time is up would be no crowd.
    do {
      const askedAtMs = performance.now();
      const letGo = await take(cycle++, endsAtMs);
      if (!letGo) break;
      acquireMs.push(performance.now() - askedAtMs);
      await letGo();
    } while (performance.now() < endsAtMs);
  };
  await Promise.all(Array.from({ length: order.count('tasks') }, (_, index) => task(index)));
  return answerOf(acquireMs, performance.now() - startedAtMs);
}

/** Two sessions hand a lock to and fro; the time is from letting go to holding. */
async function handOvers(driver: LockDriver, order: Order): Promise<Answer> {
  const sessions = [await driver.open({ apart: true }), await driver.open({ apart: true })];
  const takes = sessions.map((session) => session.lock('mutex', `${order.text('name')}-0`));
  const acquireMs: number[] = [];
  const startedAtMs = performance.now();
  let letGo = (await takes[0]!(0, Number.POSITIVE_INFINITY))!;
  for (let sample = 1; sample <= order.count('samples'); sample++) {
    const taken = takes[sample % 2]!(sample, Number.POSITIVE_INFINITY);
    await delay(order.count('settleMs')); // It waits for its turn by then.
    const letGoAtMs = performance.now();
    const gone = letGo();
    letGo = (await taken)!;
    acquireMs.push(performance.now() - letGoAtMs);
    await gone;
  }
  await letGo();
  const answer = answerOf(acquireMs, performance.now() - startedAtMs);
  await Promise.all(sessions.map((session) => session.close()));
  return answer;
}

/** A holder and many who wait; on a word, the lock goes through the hands of the first of them. */
async function serveQueue(
  driver: LockDriver,
  order: Order,
  say: (answer: Answer) => void,
  untilTold: () => Promise<void>,
): Promise<void> {
  const sessions: LockSession[] = [];
  // Those of one process may tell each other without a server, and then the line is not what is measured.
  while (sessions.length < order.count('sessions')) sessions.push(await driver.open({ apart: true }));
  const takes = Array.from({ length: order.count('waiters') + 1 }, (_, index) =>
    sessions[index % sessions.length]!.lock('mutex', `${order.text('name')}-0`),
  );
  const letGo = (await takes.shift()!(0, Number.POSITIVE_INFINITY))!;
  let passed = 0;
  let letGoAtMs = 0;
  const ended = new Promise<number>((resolve) => {
    for (const take of takes) {
      take(0, Number.POSITIVE_INFINITY)
        .then(async (release) => {
          // The last one keeps it, so that nothing goes on behind what is measured.
          if (++passed === order.count('handOvers')) resolve(performance.now() - letGoAtMs);
          else await release!();
        })
        .catch(() => {}); // Its session is closed below, while it waits.
    }
  });
  say({ queued: order.count('waiters') });
  await untilTold();
  letGoAtMs = performance.now();
  await letGo();
  const elapsedMs = await ended;
  say({ cycles: passed, elapsedMs, acquireUs: [] });
  await untilTold(); // What closing costs must not be counted.
  await Promise.all(sessions.map((session) => session.close()));
  say({ cycles: 0, elapsedMs: 0, acquireUs: [] });
}

/** A lock without a server makes more cycles than anybody wants to read: then every so many-th stands for them. */
function answerOf(acquireMs: number[], elapsedMs: number): Answer {
  const cycleCount = acquireMs.length;
  const step = Math.ceil(cycleCount / ANSWERED_LATENCIES_MAX);
  const acquireUs = acquireMs.sort((a, b) => a - b).filter((_, index) => index % step === 0);
  return { cycles: cycleCount, elapsedMs, acquireUs: acquireUs.map((ms) => Math.round(ms * 1_000)) };
}
