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

/** Whether that very process still runs. */
export function isRunning({ pid, startedAt }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const now = startOf(pid);
  return startedAt === '' || now === '' || now === startedAt;
}

/**
 * The 22nd field of Linux's stat, in ticks since the machine started, and which start of the machine that was. The
 * name before that field may have spaces and brackets, so count from behind it.
 */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    return ticks === undefined ? '' : `${ticks} of ${boot}`;
  } catch {
    return '';
  }
}
