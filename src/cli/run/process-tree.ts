import { readdirSync, readFileSync } from 'node:fs';
import { processStat } from '../../base/process-identity.ts';

/** The variable that marks every process of a run, and all they start, unless they clear their environment. */
export const MARK_VARIABLE = 'HOLDFAST_RUN';

/** The processes of one run: a process group, if it has one of its own, and whoever carries its mark. */
export interface ProcessTree {
  /** Unique to the run. */
  readonly mark: string;
  /** The command's own process. */
  readonly pid: number | undefined;
  /** Whether it leads a group of its own, which is its number. */
  readonly ownGroup: boolean;
}

/** Sends a signal to the command: to its whole group, or to it alone if it shares ours. */
export function signalGroup({ pid, ownGroup }: ProcessTree, signal: NodeJS.Signals): void {
  if (pid !== undefined) send(ownGroup ? -pid : pid, signal);
}

/** Sends a signal to the group, and to every process that has left it: `setsid` does not help. */
export function signalTree(tree: ProcessTree, signal: NodeJS.Signals): void {
  signalGroup(tree, signal);
  for (const pid of strays(tree)) send(pid, signal);
}

/** Whether any process of the group runs; where there is none of its own, whether any marked one does. */
export function isGroupAlive(tree: ProcessTree): boolean {
  const { pid, ownGroup } = tree;
  if (!ownGroup) return isTreeAlive(tree);
  if (pid === undefined || !exists(-pid)) return false;
  const pids = allPids();
  // Ended ones that nobody has asked about count for the system, and not for us.
  return pids.length === 0 || pids.some((each) => isMember(each, pid));
}

/** Whether anything of the run is still there. */
export function isTreeAlive(tree: ProcessTree): boolean {
  const { pid, ownGroup } = tree;
  if (ownGroup) return isGroupAlive(tree) || strays(tree).length > 0;
  return (pid !== undefined && exists(pid) && !processStat(pid)?.ended) || strays(tree).length > 0;
}

/** Processes with the mark that are not in the group. None where the system has no /proc. */
function strays({ mark, pid: groupId, ownGroup }: ProcessTree): number[] {
  return allPids().filter((pid) => {
    if (pid === process.pid || (ownGroup && groupId !== undefined && isMember(pid, groupId))) return false;
    return isMarked(pid, mark) && !processStat(pid)?.ended;
  });
}

function isMember(pid: number, groupId: number): boolean {
  const stat = processStat(pid);
  return stat !== undefined && stat.groupId === groupId && !stat.ended;
}

function isMarked(pid: number, mark: string): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    const marks = environment.find((each) => each.startsWith(`${MARK_VARIABLE}=`)) ?? '';
    return marks
      .slice(MARK_VARIABLE.length + 1)
      .split(':')
      .includes(mark);
  } catch {
    return false; // Gone, or somebody else's.
  }
}

function allPids(): number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
