// `npm run walk`: which files and functions one call enters, by V8's precise coverage of the built package.
//
// Counted is what lies between the public call and the client of the store: the folders in COUNTED. A function counts
// if it ran between the call and its result; anonymous functions and accessors count too. Each call is walked for the
// second time: the lock's folder exists, and what is made once per session has been made.
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';

const COUNTED = ['locks', 'queue', 'store'];
const DIST = new URL('../dist/', import.meta.url).href;

/** The functions that ran, by file; named by V8, with the line where it gives no name. */
type Walk = ReadonlyMap<string, readonly string[]>;

const profiler = new Session();

async function startCoverage(): Promise<void> {
  profiler.connect();
  await profiler.post('Profiler.enable');
  await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
}

/** What has run since the last time this was asked. */
async function takeWalk(isCounted: (file: string) => boolean): Promise<Walk> {
  const { result } = await profiler.post('Profiler.takePreciseCoverage');
  const walk = new Map<string, string[]>();
  for (const { url, functions } of result) {
    if (!url.startsWith(DIST)) continue;
    const file = url.slice(DIST.length);
    if (!isCounted(file)) continue;
    const ran = functions
      .filter(({ ranges: [whole] }) => whole!.count > 0 && whole!.startOffset > 0) // At 0 begins the module itself.
      .map(({ functionName, ranges }) => functionName || `(anonymous at ${ranges[0]!.startOffset})`);
    if (ran.length > 0) walk.set(file, ran);
  }
  return walk;
}

const isOfLocks = (file: string) => COUNTED.some((folder) => file.startsWith(`${folder}/`));
const isOfServer = (file: string) => file.startsWith('server/');

async function walked(act: () => Promise<unknown>, isCounted = isOfLocks): Promise<Walk> {
  await takeWalk(() => false);
  await act();
  return takeWalk(isCounted);
}

/** Lets everything that follows an earlier call come to rest, so that it is not counted with the next one. */
function rest(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300));
}

async function walkAll(): Promise<Map<string, Walk>> {
  await startCoverage(); // Before the modules are loaded: V8 counts no function that it has compiled before.
  const { connect } = await import('../dist/holdfast.js' as string);
  const { startServer } = await import('../dist/server.js' as string);
  const server = await startServer();
  const first = await connect({ servers: server.connectString });
  const second = await connect({ servers: server.connectString });
  const walks = new Map<string, Walk>();
  try {
    const lock = first.mutex('walk');
    const other = second.mutex('walk');
    await (await lock.acquire()).release();
    await (await other.acquire()).release();
    await rest();

    let lease: { release(): Promise<void> } | undefined;
    walks.set('free acquire', await walked(async () => (lease = await lock.acquire())));
    await rest();
    walks.set('release', await walked(() => lease!.release()));
    await rest();
    walks.set('a create, in the server', await walked(() => first.zk.create('/walk', ''), isOfServer));
    await rest();

    // Once before it counts: a waiter and its hand-over.
    for (const isCounted of [false, true]) {
      const held = await lock.acquire();
      await rest();
      let waiting: Promise<{ release(): Promise<void> }> | undefined;
      const contended = await walked(async () => {
        waiting = other.acquire();
        await new Promise((resolve) => setTimeout(resolve, 100));
        await held.release();
        await waiting;
      });
      if (isCounted) walks.set('contended acquire, with its hand-over', contended);
      await (await waiting!).release();
      await rest();
    }
  } finally {
    profiler.disconnect();
    await first.close();
    await second.close();
    await server.stop?.();
    await server.close?.();
  }
  return walks;
}

/** As text: one line for each file, with the functions in it. */
export function walkText(walks: ReadonlyMap<string, Walk>): string {
  const lines: string[] = [];
  for (const [call, walk] of walks) {
    const functionCount = [...walk.values()].reduce((sum, each) => sum + each.length, 0);
    lines.push(`${call}: ${walk.size} files, ${functionCount} functions`);
    for (const [file, functions] of walk) lines.push(`  ${file}: ${functions.join(', ')}`);
    lines.push('');
  }
  return lines.join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(walkText(await walkAll()));
}
