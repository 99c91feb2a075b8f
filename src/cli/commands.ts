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
    name: 'elect',
    summary: 'run a command while leading',
    load: () => import('./commands/elect.ts'),
  },
  {
    name: 'ls',
    summary: 'the locks that are held or waited for',
    load: () => import('./commands/ls.ts'),
  },
  {
    name: 'inspect',
    summary: 'who holds a lock, who waits for it, since when',
    load: () => import('./commands/inspect.ts'),
  },
  {
    name: 'top',
    summary: 'the busiest locks, as they change',
    load: () => import('./commands/top.ts'),
  },
  {
    name: 'graph',
    summary: 'who waits for whom; finds deadlocks',
    load: () => import('./commands/graph.ts'),
  },
  {
    name: 'history',
    summary: 'who held a lock, and who took it from whom',
    load: () => import('./commands/history.ts'),
  },
  {
    name: 'revoke',
    summary: 'ask the holders of a lock to let go',
    load: () => import('./commands/revoke.ts'),
  },
  {
    name: 'release',
    summary: 'take a lock from its holder, with a record of it',
    load: () => import('./commands/release.ts'),
  },
  {
    name: 'tokens',
    summary: 'how far fencing tokens have come; raise them after a move',
    load: () => import('./commands/tokens.ts'),
  },
  {
    name: 'doctor',
    summary: 'find what is wrong with servers and locks, and what to do',
    load: () => import('./commands/doctor.ts'),
  },
  {
    name: 'bench',
    summary: 'how fast locks are, from here, on these servers',
    load: () => import('./commands/bench.ts'),
  },
  {
    name: 'demo',
    summary: 'a tour of what a lock has to withstand',
    load: () => import('./commands/demo.ts'),
  },
  {
    name: 'server',
    summary: 'run a ZooKeeper-compatible server, or look after the local one',
    load: () => import('./commands/server.ts'),
  },
  {
    name: 'completion',
    summary: 'make bash or zsh complete commands and options',
    load: () => import('./commands/completion.ts'),
  },
];
