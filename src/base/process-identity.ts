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

/** The 22nd field of Linux's stat; the name before it may have spaces and brackets, so count from behind it. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
