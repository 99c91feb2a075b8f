import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Starts one of our own programs. It cannot outlive this process, however that ends. */
export function startChild(file: string, ...args: string[]): ChildProcess {
  const path = new URL(file, import.meta.url).pathname;
  // setpriv replaces itself, so the process id is the program's.
  const node = [process.execPath, '--import', 'tsx', path, ...args];
  return spawn('setpriv', ['--pdeathsig', 'KILL', ...node], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/** Ends it as a crash would, also if it is stopped. */
export async function killChild(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await exitOf(child);
}

export async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
