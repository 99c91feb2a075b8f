import type { DefineCommand } from './define-command.ts';

interface CommandRow {
  readonly name: string;
  readonly summary: string;
  /** Only the command that was asked for is loaded: a lock in a crontab should not wait for a chart. */
  load(): Promise<{ readonly define: DefineCommand }>;
}

/** Every command, in the order of `holdfast --help`. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'run',
    summary: 'run a command while holding a lock',
    load: () => import('./commands/run.ts'),
  },
  {
    name: 'server',
    summary: 'run a ZooKeeper-compatible server, or look after the local one',
    load: () => import('./commands/server.ts'),
  },
];
