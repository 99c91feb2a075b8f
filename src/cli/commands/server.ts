import { type Command, InvalidArgumentError, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { describeDuration } from '../../base/duration.ts';
import { socketAddress } from '../../base/socket-address.ts';
import { findLocalServer, stopLocalServer } from '../../local/ensure-local-server.ts';
import { isProcessHere, type ServerRecord } from '../../local/server-record.ts';
import type { ServerLimits } from '../../server/server-limits.ts';
import type { ServerOptions } from '../../server/start-server.ts';
import { CommandError } from '../command-error.ts';
import type { CommandContext } from '../define-command.ts';
import { EXIT } from '../exit-codes.ts';
import { jsonLine, withJson } from '../json.ts';
import { serverLog } from '../server-log.ts';
import { askFourLetterWord } from '../tcp-four-letter-word.ts';
import { visibleText } from '../terminal/visible-text.ts';

interface ServerFlags {
  readonly listen: Pick<ServerOptions, 'host' | 'port' | 'socketPath'>;
  readonly data?: string;
  readonly admin?: { readonly host: string; readonly port: number };
  readonly limit?: Partial<ServerLimits>;
  readonly words?: string;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

const ANSWER_MS_MAX = 2_000;
const EXAMPLES = `
Examples:
  holdfast server                                 in memory, on 127.0.0.1:2181
  holdfast server --data /var/lib/holdfast        what was answered survives a crash
  holdfast server --listen unix:/run/zk.sock --admin 127.0.0.1:8080
  holdfast server --limit tickMs=500 --limit sessionTimeoutMsMin=1000
  holdfast server status                          the one that is there when nothing is configured`;

export function define(command: Command, context: CommandContext): void {
  withJson(command.enablePositionalOptions())
    .addOption(
      new Option('-l, --listen <address>', 'host:port or unix:/path')
        .argParser(parseListen)
        .default({ host: '127.0.0.1', port: 2181 }, '127.0.0.1:2181'),
    )
    .option('-d, --data <folder>', 'keep everything there; in memory if left out')
    .option('--admin <host:port>', 'answer operators over HTTP: /commands, /metrics, /healthz', parseHostPort)
    .option('--limit <name=value>', 'one of the limits of docs/embedded-server.md; may be repeated', addLimit)
    .option('--words <list>', 'the four-letter words to answer, such as srvr,mntr, or all')
    .option('--verbose', 'log everything on standard error, and not only what goes wrong')
    .addHelpText('after', EXAMPLES)
    .action((flags: ServerFlags) => serve(flags, context));
  withJson(command.command('status'))
    .description('say whether the local server runs, and for whom; exit code 1 if it does not')
    .action((flags) => status(flags, context));
  withJson(command.command('stop'))
    .description('stop the local server; what is held stays, on disk, until its sessions end')
    .option('--force', 'also with programs connected, which start it again')
    .action((flags) => stop(flags, context));
}

/** Runs until SIGINT or SIGTERM. */
async function serve(flags: ServerFlags, { console }: CommandContext): Promise<void> {
  const { startServer } = await import('../../server/start-server.ts');
  const log = serverLog(console, { verbose: flags.verbose ?? false, json: flags.json ?? false });
  const server = await startServer({
    ...flags.listen,
    ...(flags.data !== undefined && { folder: flags.data }),
    ...(flags.admin && { admin: flags.admin }),
    ...(flags.limit && { limits: flags.limit }),
    ...(flags.words !== undefined && {
      fourLetterWords: flags.words === 'all' ? '*' : flags.words.split(',').map((word) => word.trim()),
    }),
    log,
  }).catch((error: NodeJS.ErrnoException) => {
    const misused = error instanceof TypeError || error instanceof RangeError;
    if (error.code === undefined && !misused) throw error;
    throw new CommandError(error.message, misused ? EXIT.badUsage : EXIT.failed, { cause: error });
  });
  const { connectString, adminUrl } = server;
  const said = adminUrl === undefined ? connectString : `${connectString}, for operators ${adminUrl}`;
  console.stdout.write(
    flags.json
      ? jsonLine({ event: 'listening', connectString, adminUrl })
      : `listening on ${visibleText(said)}\n`,
  );
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await server.stop();
}

interface LocalStatus {
  readonly connections: number | undefined;
  readonly ephemeralNodes: number | undefined;
}

async function status({ json }: { json?: boolean }, { console, exitWith }: CommandContext): Promise<void> {
  const { place, record, others } = await findLocalServer(console.env);
  const beside = others.map(({ pid, folder }) => ({ pid, folder }));
  if (!record) {
    exitWith(EXIT.failed);
    const facts = { running: false, folder: place.folder, ...(beside.length > 0 && { others: beside }) };
    const lines = ['not running', ...beside.map(otherLine)];
    console.stdout.write(json ? jsonLine(facts) : lines.map((line) => `${line}\n`).join(''));
    return;
  }
  const { connections, ephemeralNodes } = await ask(record);
  if (json) {
    const { pid, version, since, socketPath, folder } = record;
    const facts = { pid, version, since, socketPath, folder, connections, ephemeralNodes };
    console.stdout.write(jsonLine({ running: true, ...facts, ...(beside.length > 0 && { others: beside }) }));
    return;
  }
  const upMs = systemClock.wallMs() - Date.parse(record.since);
  const rows = [
    ['running', `process ${record.pid}, version ${record.version}, for ${describeDuration(upMs)}`],
    ['address', visibleText(socketAddress(record.socketPath))],
    ['folder', visibleText(record.folder)],
    ['connections', connections === undefined ? 'it does not answer' : String(connections)],
    ['held or queued', String(ephemeralNodes ?? '?')],
  ];
  const lines = [...rows.map(([name, value]) => `${name!.padEnd(15)} ${value}`), ...beside.map(otherLine)];
  console.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

/** Its locks and the ones here exclude nobody of the other side. */
function otherLine({ pid, folder }: { readonly pid: number; readonly folder: string }): string {
  return `not reachable   process ${pid}, another local server of this user, in ${visibleText(folder)}`;
}

async function stop(
  { force, json }: { force?: boolean; json?: boolean },
  { console }: CommandContext,
): Promise<void> {
  const { place, record } = await findLocalServer(console.env);
  if (record && !isProcessHere(record)) {
    throw new CommandError(`process ${record.pid} of another container serves; stop it there`, EXIT.failed);
  }
  if (record) {
    const { connections = 0 } = await ask(record);
    if (connections > 0 && !force) {
      throw new CommandError(
        `${connections} programs are connected and would start it again; --force stops it all the same`,
        EXIT.failed,
      );
    }
    await stopLocalServer(place, record);
  }
  console.stdout.write(
    json ? jsonLine({ stopped: record !== undefined }) : record ? 'stopped\n' : 'not running\n',
  );
}

async function ask({ socketPath }: ServerRecord): Promise<LocalStatus> {
  const answer = await askFourLetterWord(socketPath, 'mntr', {
    clock: systemClock,
    timeoutMs: ANSWER_MS_MAX,
  });
  const value = (name: string) => {
    const found = new RegExp(`^${name}\\s+(\\d+)`, 'm').exec(answer ?? '')?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const connections = value('zk_num_alive_connections');
  return {
    connections: connections && connections - 1, // Not counting the one that asks.
    ephemeralNodes: value('zk_ephemerals_count'),
  };
}

function parseListen(text: string): Pick<ServerOptions, 'host' | 'port' | 'socketPath'> {
  return text.startsWith('unix:/') ? { socketPath: text.slice('unix:'.length) } : parseHostPort(text);
}

function parseHostPort(text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) throw new InvalidArgumentError('such as 127.0.0.1:2181 is needed');
  return { host: match[1] ?? match[2]!, port };
}

function addLimit(text: string, before: Partial<ServerLimits> = {}): Partial<ServerLimits> {
  const match = /^(\w+)=(\d+|Infinity)$/.exec(text);
  if (!match) throw new InvalidArgumentError('such as tickMs=500 is needed');
  return { ...before, [match[1]!]: Number(match[2]) };
}
