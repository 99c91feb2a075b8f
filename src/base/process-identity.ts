import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

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
  const bootId = textOf('/proc/sys/kernel/random/boot_id');
  return ticks && bootId ? `${ticks} of ${bootId}` : '';
}

/** Where a process runs: its number means nothing to a process that runs elsewhere. Empty is what cannot be told. */
export interface ProcessPlace {
  readonly hostName: string;
  /** Of the machine, as installed: it lasts when the machine starts again or gets another name. */
  readonly machineId: string;
  /** Of the running kernel. All containers of a machine have the same. */
  readonly bootId: string;
  /** Within which process numbers are counted: mostly one for each container. */
  readonly pidNamespace: string;
}

export function ownPlace(): ProcessPlace {
  return {
    hostName: hostname(),
    machineId: textOf('/etc/machine-id'),
    bootId: textOf('/proc/sys/kernel/random/boot_id'),
    pidNamespace: unlessMissing(() => readlinkSync('/proc/self/ns/pid')),
  };
}

/** Whether that process runs, or ran, under the kernel that runs this one. */
export function isOnThisKernel({ bootId, hostName }: ProcessPlace): boolean {
  const own = ownPlace();
  return bootId === own.bootId && (bootId !== '' || hostName === own.hostName);
}

/** Whether that process's number means the same process here. */
export function isInThisPidNamespace(place: ProcessPlace): boolean {
  return isOnThisKernel(place) && place.pidNamespace === ownPlace().pidNamespace;
}

/**
 * Whether that machine is this one, at another start perhaps. The name counts too: machines that were copied from each
 * other have the same identity.
 */
export function isThisMachine({ machineId, hostName }: ProcessPlace): boolean {
  const own = ownPlace();
  return machineId !== '' && machineId === own.machineId && hostName === own.hostName;
}

function textOf(file: string): string {
  return unlessMissing(() => readFileSync(file, 'latin1').trim());
}

function unlessMissing(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
