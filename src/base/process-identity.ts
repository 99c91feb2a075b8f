import { readFileSync } from 'node:fs';

/** Which process: a number alone is given to another one sooner or later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the system's own measure; empty where that cannot be told. */
  readonly startedAt: string;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startedAt: startOf(process.pid) };
}

/** Whether that very process still runs. One that has ended and that its parent has not asked about does not. */
export function isRunning({ pid, startedAt }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  if (processStat(pid)?.ended) return false;
  const now = startOf(pid);
  return startedAt === '' || now === '' || now === startedAt;
}

/** What Linux tells of a process, as far as anyone here asks. */
export interface ProcessStat {
  /** It is a zombie: where nobody asks how it ended, as process 1 of many a container does not, it stays one. */
  readonly ended: boolean;
  readonly groupId: number;
  /** In ticks since the machine started. */
  readonly startedAtTicks: string;
}

/** Undefined if there is no such process, or no such system. */
export function processStat(pid: number): ProcessStat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name before these fields may have spaces and brackets, so count from behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, , groupId] = fields;
    return {
      ended: state === 'Z' || state === 'X',
      groupId: Number(groupId),
      startedAtTicks: fields[19] ?? '',
    };
  } catch {
    return undefined;
  }
}

/** When it started, and which start of the machine that counts from. */
function startOf(pid: number): string {
  const ticks = processStat(pid)?.startedAtTicks;
  if (!ticks) return '';
  try {
    return `${ticks} of ${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}`;
  } catch {
    return '';
  }
}
