import { InvalidArgumentError } from 'commander';
import { sleep } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import type { Holdfast } from '../../locks/holdfast.ts';
import type { LockInfo } from '../../locks/inspection.ts';
import { waitGraph } from '../../locks/wait-graph.ts';
import { type ConnectionFlags, connectWith, parseDurationOption, withConnection } from '../connection.ts';
import type { Console } from '../console.ts';
import type { DefineCommand } from '../define-command.ts';
import { lockColumns } from '../lock-tables.ts';
import { printTable } from '../print.ts';
import { truncated } from '../terminal/display-width.ts';
import { isQuit, readKeys } from '../terminal/keys.ts';
import { type Paint, paintFor } from '../terminal/paint.ts';
import { Screen } from '../terminal/screen.ts';
import { tableLines } from '../terminal/table.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { untilSignalled } from '../until-signalled.ts';
import { withHoldfast } from '../with-holdfast.ts';
import { isInUse } from './ls.ts';

interface TopOptions extends ConnectionFlags {
  readonly interval: number;
}

type Order = 'waiting' | 'joined' | 'name';
const ORDERS: Readonly<Record<string, Order>> = { w: 'waiting', j: 'joined', n: 'name' };
const INTERVAL_MS_MIN = 100;

/** The locks that matter most, as they change. */
export const define: DefineCommand = (command, { console }) => {
  withConnection(command)
    .option('--interval <duration>', 'how often to look', parseIntervalOption, 1_000)
    .addHelpText(
      'after',
      `
Examples:
  holdfast top
  holdfast top --interval 5s

Keys: w, j, n sort by waiting, joined, name; q quits. Where standard output is no terminal, it prints once.`,
    )
    .action(async (options: TopOptions) => {
      if (!console.stdout.isTTY) {
        const locks = await withHoldfast(console, options, 'reading the locks', (holdfast) =>
          holdfast.list(),
        );
        return printTable(
          console,
          lockColumns(systemClock.wallMs()),
          inOrderOf(locks.filter(isInUse), 'waiting'),
        );
      }
      await using holdfast = await connectWith(options);
      await untilSignalled((signal, stop) => watch(holdfast, console, { ...options, signal, stop }));
    });
};

function parseIntervalOption(text: string): number {
  const intervalMs = parseDurationOption(text);
  if (intervalMs < INTERVAL_MS_MIN) throw new InvalidArgumentError(`at least ${INTERVAL_MS_MIN}ms is needed`);
  return intervalMs;
}

interface Watching {
  readonly interval: number;
  readonly signal: AbortSignal;
  stop(): void;
}

async function watch(
  holdfast: Holdfast,
  console: Console,
  { interval, signal, stop }: Watching,
): Promise<void> {
  using screen = new Screen(console);
  const paint = paintFor(console.stdout, console.env);
  let order: Order = 'waiting';
  let locks: LockInfo[] = [];
  let trouble: string | undefined;
  const draw = () => {
    const facts = { order, trouble, session: holdfast.zk.session.state, columns: screen.columns, paint };
    screen.draw(screenLines(locks, facts));
  };
  using _keys = readKeys(console, (key) => {
    if (isQuit(key)) stop();
    order = ORDERS[key] ?? order;
    if (!signal.aborted) draw();
  });
  console.stdout.on('resize', draw);
  try {
    while (!signal.aborted) {
      try {
        await holdfast.zk.sync();
        locks = (await holdfast.list()).filter(isInUse);
        trouble = undefined;
      } catch (error) {
        trouble = (error as Error).message; // What was seen last stays on the screen, and says so.
      }
      if (!signal.aborted) draw();
      await sleep(systemClock, interval, signal).catch(() => {});
    }
  } finally {
    console.stdout.off('resize', draw);
  }
}

interface ScreenFacts {
  readonly order: Order;
  readonly trouble: string | undefined;
  readonly session: string;
  readonly columns: number;
  readonly paint: Paint;
}

function screenLines(locks: readonly LockInfo[], facts: ScreenFacts): string[] {
  const { paint, columns } = facts;
  const wallMs = systemClock.wallMs();
  const held = locks.filter(({ holders }) => holders.length > 0).length;
  const waiting = locks.reduce((sum, { queue }) => sum + queue.length, 0);
  const { deadlocks } = waitGraph(locks);
  const clock = new Date(wallMs).toISOString().slice(11, 19);
  const head = `holdfast top  ${clock}Z  ${held} held  ${waiting} waiting  by ${facts.order} (w j n)  q quits`;
  const news =
    facts.trouble !== undefined
      ? paint('bad', truncated(visibleText(`not up to date: ${facts.trouble}`), columns))
      : deadlocks.length > 0
        ? paint('bad', truncated(`${deadlocks.length} circle of waits: see holdfast graph`, columns))
        : facts.session === 'connected'
          ? ''
          : paint('warning', `the session is ${facts.session}`);
  return [
    paint('heading', truncated(head, columns)),
    news,
    ...tableLines(lockColumns(wallMs), inOrderOf(locks, facts.order), { width: columns, paint }),
  ];
}

/** Most waiting, or longest in the queue, first. */
export function inOrderOf(locks: readonly LockInfo[], order: Order): LockInfo[] {
  const joined = ({ holders }: LockInfo) => holders[0]?.since.getTime() ?? Number.POSITIVE_INFINITY;
  const byName = (a: LockInfo, b: LockInfo) => (a.name < b.name ? -1 : 1);
  return [...locks].sort((a, b) => {
    if (order === 'waiting' && a.queue.length !== b.queue.length) return b.queue.length - a.queue.length;
    if (order !== 'name' && joined(a) !== joined(b)) return joined(a) < joined(b) ? -1 : 1;
    return byName(a, b);
  });
}
