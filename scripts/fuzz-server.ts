// Feeds fuzzed frames to a server core, for as long as you like:
//   npx tsx scripts/fuzz-server.ts --frames 1000000 --seed 1
// Or sends a server what is dear, by clients that come and go, and fails if one turn of its event loop costs too much:
//   npx tsx scripts/fuzz-server.ts --stalls 60 --seed 1 [--folder /tmp/data]
import { parseArgs } from 'node:util';
import { AttackedServer } from '../test/hostile/attacked-server.ts';
import { fuzzCore } from '../test/hostile/fuzz-core.ts';
import { attack } from '../test/hostile/stall-fuzz.ts';

const { values } = parseArgs({
  options: {
    frames: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    stalls: { type: 'string' },
    folder: { type: 'string' },
  },
});
const TURN_MS_MAX = 20;
const ROUND_MS = 4_000;
const PROGRESS_EVERY = 200_000;
const MEBIBYTE = 2 ** 20;

if (values.stalls !== undefined) await measureStalls(Number(values.stalls));
else feedFrames();

/** One attack after the other on one server, each from a seed of its own. */
async function measureStalls(seconds: number): Promise<void> {
  const { folder } = values;
  await using server = await AttackedServer.metered({
    limits: { nodesMax: 1_200_000, tickMs: 250, sessionTimeoutMsMin: 1_000 },
    tree: { thousands: folder === undefined ? 1_000 : 0, nameCount: folder === undefined ? 100_000 : 0 },
    ...(folder !== undefined && { folder }),
  });
  await attack(server, { seed: 0, clients: 7, ms: ROUND_MS / 4 }); // What is run for the first time is compiled.
  const endMs = performance.now() + seconds * 1_000;
  let failed = false;
  for (let seed = Number(values.seed); performance.now() < endMs; seed++) {
    const { turns, bystander, clientCount } = await attack(server, { seed, clients: 20, ms: ROUND_MS });
    const tooDear = turns.maxMs >= TURN_MS_MAX || bystander.lost !== undefined;
    failed ||= tooDear;
    console.log(
      `seed ${seed}: ${clientCount} clients, dearest turns ${turns.dearest.map((ms) => ms.toFixed(1)).join(', ')} ms, ` +
        `collector ${turns.collectorMaxMs.toFixed(0)} ms, lock cycles ${bystander.p50Ms.toFixed(1)} ms` +
        `${bystander.lost === undefined ? '' : `, lost: ${bystander.lost}`}${tooDear ? '  TOO DEAR' : ''}`,
    );
  }
  if (failed) process.exitCode = 1;
}

function feedFrames(): void {
  const startedAtMs = performance.now();
  let told = 0;
  const result = fuzzCore({
    frames: Number(values.frames),
    seed: Number(values.seed),
    onProgress: (frames) => {
      if (frames - told < PROGRESS_EVERY) return;
      told = frames;
      console.log(`${frames} frames`);
    },
  });
  const seconds = (performance.now() - startedAtMs) / 1000;
  const grown = (result.rssGrowthBytes / MEBIBYTE).toFixed(0);
  console.log(
    `${result.frames} frames, ${result.answered} answered, ${result.dropped} connections dropped, ` +
      `${seconds.toFixed(1)} s, memory grown by ${grown} MiB`,
  );
}
