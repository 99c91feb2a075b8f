// Feeds fuzzed frames to a server core, for as long as you like:
//   npx tsx scripts/fuzz-server.ts --frames 1000000 --seed 1
import { parseArgs } from 'node:util';
import { fuzzCore } from '../test/hostile/fuzz-core.ts';

const { values } = parseArgs({
  options: { frames: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } },
});
const PROGRESS_EVERY = 200_000;
const MEBIBYTE = 2 ** 20;

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
