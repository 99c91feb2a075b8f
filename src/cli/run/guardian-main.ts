// The guardian's process: sees to it that nothing of a run outlives its lease, whatever happens to the wrapper. It is
// told by lines on its standard input, each the whole of what there is to know; the end of that input without a last
// word is the end of the wrapper. It loads as little as it can: it is started once for every run.
import { rmSync } from 'node:fs';
import { systemClock } from '../../base/clock.ts';
import { machineNowMs } from '../../base/machine-clock.ts';
import { isTreeAlive, type ProcessTree, signalTree } from './process-tree.ts';

/** What the guardian is told. */
export interface Watched {
  readonly tree: ProcessTree;
  /** On the machine's clock: nothing of the run may be alive then. */
  readonly leaseEndMs: number;
  readonly graceMs: number;
  /** A folder that the wrapper removes at its end, and the guardian where the wrapper was killed. */
  readonly folder?: string | undefined;
  /** The run is over. */
  readonly done: boolean;
}

/** Killing takes a moment. */
const KILL_AHEAD_MS = 50;
const POLL_MS = 10;
/** A process that is stuck in the kernel cannot be waited for. */
const KILL_MS_MAX = 10_000;
/** A command that was being started when the wrapper died is looked for this long. */
const SEARCH_MS = 1_000;

let watched: Watched | undefined;
let killAtMs = Number.POSITIVE_INFINITY;
let wrapperGone = false;
let killing = false;
let cancelTimer = () => {};

function arm(): void {
  cancelTimer();
  const atMs = Math.min(killAtMs, (watched?.leaseEndMs ?? Number.POSITIVE_INFINITY) - KILL_AHEAD_MS);
  if (killing || atMs === Number.POSITIVE_INFINITY) return;
  const delayMs = Math.max(0, atMs - machineNowMs());
  cancelTimer = systemClock.at(systemClock.nowMs() + delayMs, () => {
    // After a stall of the machine: what the wrapper has said meanwhile comes first.
    systemClock.afterInput(() => systemClock.afterInput(dueNow));
  });
}

function dueNow(): void {
  const atMs = Math.min(killAtMs, watched!.leaseEndMs - KILL_AHEAD_MS);
  if (machineNowMs() < atMs) return arm();
  killing = true;
  kill(machineNowMs() + KILL_MS_MAX);
}

function kill(untilMs: number): void {
  signalTree(watched!.tree, 'SIGKILL');
  if (!isTreeAlive(watched!.tree) || machineNowMs() > untilMs) process.exit();
  systemClock.at(systemClock.nowMs() + POLL_MS, () => kill(untilMs));
}

/** Still in time for an orderly end: the servers wait for the whole of the session's timeout. */
function wrapperEnded(): void {
  if (wrapperGone) return;
  wrapperGone = true;
  if (!watched || watched.done) process.exit();
  const { tree, graceMs, folder } = watched;
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  killAtMs = machineNowMs() + graceMs;
  askToEnd(tree, machineNowMs() + SEARCH_MS);
  arm();
}

function askToEnd(tree: ProcessTree, searchUntilMs: number): void {
  if (killing) return;
  if (isTreeAlive(tree)) {
    signalTree(tree, 'SIGTERM');
    signalTree(tree, 'SIGCONT');
    exitWhenGone(tree);
  } else if (tree.pid === undefined && machineNowMs() < searchUntilMs) {
    systemClock.at(systemClock.nowMs() + POLL_MS, () => askToEnd(tree, searchUntilMs));
  } else {
    process.exit();
  }
}

function exitWhenGone(tree: ProcessTree): void {
  if (killing) return;
  if (!isTreeAlive(tree)) process.exit();
  systemClock.at(systemClock.nowMs() + POLL_MS * 5, () => exitWhenGone(tree));
}

// Whoever ends the wrapper's terminal or service ends the wrapper; this one goes after it, and last.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => {});
const given = process.env['HOLDFAST_WATCHED'];
if (given !== undefined) {
  watched = JSON.parse(given) as Watched;
  arm();
}
let pending = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (text: string) => {
  const lines = (pending + text).split('\n');
  pending = lines.pop()!;
  const last = lines.at(-1);
  if (last === undefined) return;
  watched = JSON.parse(last) as Watched;
  if (watched.done) process.exit();
  arm();
});
process.stdin.on('end', wrapperEnded);
process.stdin.on('error', wrapperEnded);
