import { writeFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Console } from '../console.ts';
import type { CommandContext, DefineCommand } from '../define-command.ts';
import { killHolder, pauseHolder, showQueue } from '../demo/acts.ts';
import { Crew, LOCK_NAME } from '../demo/crew.ts';
import { HERD_SIZES, type HerdCounts, type LeftOut, measureHerd } from '../demo/herd.ts';
import { herdLines } from '../demo/herd-chart.ts';
import { herdSvg } from '../demo/herd-svg.ts';
import { Narrator } from '../demo/narrator.ts';
import { embeddedStage, openStage, type Stage } from '../demo/stage.ts';
import { printJson } from '../print.ts';
import { withProgress } from '../terminal/progress.ts';
import { visibleText } from '../terminal/visible-text.ts';
import { Signalled, untilSignalled } from '../until-signalled.ts';

const NAMES = ['ana', 'ben', 'cem', 'dua', 'eli'];
const SVG_FILE = 'holdfast-herd.svg';

interface HerdOptions extends ConnectionFlags {
  readonly svg: string;
  readonly clients: readonly number[];
  readonly json?: boolean;
}

/** Shows what a lock has to withstand. */
export const define: DefineCommand = (command, context) => {
  command.addHelpText(
    'after',
    `
Examples:
  holdfast demo tour
  holdfast demo herd --svg herd.svg
  holdfast demo pause --servers zk1:2181,zk2:2181,zk3:2181

On a terminal it takes its time: any key goes on, q ends it. Elsewhere it runs through. Nothing is left behind.`,
  );
  defineTour(command, context);
  defineHerd(command, context);
  definePause(command, context);
};

function defineTour(command: Command, { console, exitWith }: CommandContext): void {
  command
    .command('tour', { isDefault: true })
    .description(
      'five programs and one lock: the queue, kill -9, a frozen holder, the herd; on a server of its own',
    )
    .option('--svg <file>', 'where to draw the herd', SVG_FILE)
    .addOption(clientsOption())
    .action(async ({ svg, clients }: HerdOptions) => {
      exitWith(
        await perform(console, embeddedStage, async (stage, narrator, signal) => {
          await narrator.heading('1. Five programs, one lock');
          await narrator.say(`${stage.description}, and five processes that want the lock ${LOCK_NAME}`);
          await using crew = await Crew.start(stage, NAMES, signal);
          await crew.lineUp();
          await showQueue(crew, narrator);
          await narrator.heading('2. A holder dies');
          await killHolder(crew, narrator);
          await narrator.heading('3. A holder is frozen, and wakes up too late');
          await pauseHolder(crew, narrator, signal);
          await narrator.heading('4. The herd');
          await herd(console, stage, { narrator, signal, svg, clients });
          narrator.show([
            '',
            `Now: holdfast run ${LOCK_NAME} -- your command, or ten lines of TypeScript: see README.md`,
          ]);
        }),
      );
    });
}

function defineHerd(command: Command, { console, exitWith }: CommandContext): void {
  withConnection(command.command('herd'))
    .description('requests and events of SimpleLock beside Mutex, counted on the spot')
    .option('--svg <file>', 'where to draw it', SVG_FILE)
    .addOption(clientsOption())
    .option('--json', 'for programs: the counts, and no drawing')
    .action(async (options: HerdOptions) => {
      exitWith(
        await perform(
          console,
          () => openStage(options, console.env),
          async (stage, narrator, signal) => {
            if (options.json) {
              return printJson(console, await countHerd(console, stage, options.clients, signal));
            }
            await herd(console, stage, { narrator, signal, svg: options.svg, clients: options.clients });
          },
        ),
      );
    });
}

function definePause(command: Command, { console, exitWith }: CommandContext): void {
  withConnection(command.command('pause'))
    .description('a holder is frozen past its session, and its late write refused')
    .action(async (options: ConnectionFlags) => {
      exitWith(
        await perform(
          console,
          () => openStage(options, console.env),
          async (stage, narrator, signal) => {
            await narrator.say(
              `two processes and the lock ${LOCK_NAME} on ${visibleText(stage.description)}`,
            );
            await using crew = await Crew.start(stage, NAMES.slice(0, 2), signal);
            await crew.lineUp();
            await pauseHolder(crew, narrator, signal);
          },
        ),
      );
    });
}

const LEFT_OUT: Readonly<Record<LeftOut, string>> = {
  connections: 'the servers did not take more connections from here (maxClientCnxns)',
  time: 'more clients were left out: this machine is too busy to do it in time',
};
const CLIENTS_MAX = 1_000;

function clientsOption(): Option {
  return new Option('--clients <list>', 'how many clients in the herd')
    .default(HERD_SIZES, HERD_SIZES.join(','))
    .argParser((text) => {
      const sizes = text.split(',').map(Number);
      if (sizes.every((size) => Number.isInteger(size) && size >= 2 && size <= CLIENTS_MAX)) return sizes;
      throw new InvalidArgumentError(`such as 10,50,100 is needed, each from 2 to ${CLIENTS_MAX}`);
    });
}

type Play = (stage: Stage, narrator: Narrator, signal: AbortSignal) => Promise<void>;

/** Opens the stage, plays, and clears everything away, however it ends. The exit code. */
async function perform(console: Console, open: () => Promise<Stage>, play: Play): Promise<number> {
  return untilSignalled(async (signal, stop) => {
    try {
      using narrator = new Narrator(console, signal, stop);
      await using stage = await withProgress(console, 'setting the stage', open);
      await play(stage, narrator, signal);
      return 0;
    } catch (error) {
      if (signal.aborted && signal.reason instanceof Signalled) return signal.reason.exitCode;
      throw error;
    }
  });
}

interface Herding {
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
  readonly svg: string;
  readonly clients: readonly number[];
}

async function herd(
  console: Console,
  stage: Stage,
  { narrator, signal, svg, clients }: Herding,
): Promise<void> {
  await narrator.say(
    'SimpleLock, the textbook one: whoever lets go wakes everybody, and all but one in vain',
  );
  await narrator.say('Mutex: everybody waits for the one ahead, and is woken once');
  const { counts, leftOut } = await countHerd(console, stage, clients, signal);
  const columns = console.stdout.isTTY ? console.stdout.columns || 80 : 80;
  narrator.show(['', ...herdLines(counts, { columns, paint: narrator.paint }), '']);
  const largest = counts.at(-1);
  if (largest) {
    const { clients, simple, mutex } = largest;
    await narrator.say(
      `${clients} clients: ${simple.requests} requests and ${simple.events} events against ${mutex.requests} and ${mutex.events}`,
    );
  }
  if (leftOut) await narrator.say(LEFT_OUT[leftOut], 'warning');
  try {
    await writeFile(svg, herdSvg(counts, stage.description));
    await narrator.say(`drawn in ${visibleText(svg)}`);
  } catch (error) {
    await narrator.say(visibleText(`not drawn: ${(error as Error).message}`), 'warning');
  }
}

function countHerd(
  console: Console,
  stage: Stage,
  sizes: readonly number[],
  signal: AbortSignal,
): Promise<HerdCounts> {
  return withProgress(console, 'counting', (tell) => measureHerd(stage, { sizes, signal, tell }));
}
