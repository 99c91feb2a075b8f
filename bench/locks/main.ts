// `npm run bench:locks`: acquire and release cycles per second beside Curator's InterProcessMutex, on one real
// ZooKeeper with its data in memory, in interleaved rounds; and Holdfast on the embedded server, same client.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startZooKeeper } from '../../test/support/zookeeper-process.ts';
import { Peer } from './peer.ts';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 3 : 7;
const SCALE = quick ? 0.4 : 1;

/** Floors and aims are those of the design: ratios to Curator. */
const scenarios = [
  { name: 'solo: 1 task, 1 lock', tasks: 1, locks: 1, sessions: 1, cycles: 1_500, floor: 1.5, aim: 2 },
  {
    name: 'parallel: 32 tasks, 32 locks, 1 session',
    tasks: 32,
    locks: 32,
    sessions: 1,
    cycles: 6_000,
    floor: 2.3,
    aim: 4,
  },
  {
    name: 'contended: 32 tasks, 1 lock, 8 sessions',
    tasks: 32,
    locks: 1,
    sessions: 8,
    cycles: 3_000,
    floor: 3,
    aim: 6,
  },
  {
    name: 'crowd: 200 tasks, 1 lock, 8 sessions',
    tasks: 200,
    locks: 1,
    sessions: 8,
    cycles: 3_000,
    floor: 3,
    aim: 8,
  },
] as const;
type Scenario = (typeof scenarios)[number];

const folder = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const CLASS_PATH = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'zookeeper',
  'guava',
  'slf4j-nop',
]
  .map((jar) => `/usr/share/java/${jar}.jar`)
  .join(':');

await using server = await startZooKeeper({
  tickTimeMs: 2_000,
  jvmFlags: ['-Xms512m', '-Xmx512m', '-XX:+UseSerialGC'],
});
const embedded = await Peer.start(process.execPath, ['--import', 'tsx', folder('embedded-server.ts')]);
const peers = {
  Curator: await Peer.start('java', [
    '-Xmx512m',
    '-cp',
    CLASS_PATH,
    folder('CuratorLocks.java'),
    server.connectString,
  ]),
  Holdfast: await Peer.start(process.execPath, [
    '--import',
    'tsx',
    folder('holdfast-locks.ts'),
    server.connectString,
  ]),
  'Holdfast, embedded server': await Peer.start(process.execPath, [
    '--import',
    'tsx',
    folder('holdfast-locks.ts'),
    embedded.greeting,
  ]),
} as const;
type Name = keyof typeof peers;
const names = Object.keys(peers) as Name[];
const measured = new Map<Scenario, Map<Name, number[]>>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const scenario of scenarios) {
    for (const [index] of names.entries()) {
      const name = names[(index + round) % names.length]!; // Nobody always goes first.
      const cycles = Math.round(scenario.cycles * SCALE);
      const elapsedMs = await peers[name].measure({ ...scenario, cycles });
      if (round === 0) continue; // Warm-up: two compilers.
      const byName = measured.get(scenario) ?? new Map<Name, number[]>();
      measured.set(scenario, byName.set(name, [...(byName.get(name) ?? []), (cycles / elapsedMs) * 1_000]));
    }
    process.stderr.write(`\rround ${round} of ${ROUNDS}: ${scenario.name.padEnd(45)}`);
  }
}
process.stderr.write('\n');
for (const peer of [...Object.values(peers), embedded]) peer.stop();
const report = table().join('\n');
console.log(report);
mkdirSync(folder('../results/'), { recursive: true });
writeFileSync(folder('../results/locks.md'), `${report}\n`);

function table(): string[] {
  const lines = [
    '| ZooKeeper 3.8, data in memory | Curator 5.4 | Holdfast | ratio (spread) | floor | aim | on the embedded server | against ZooKeeper |',
    '|---|---|---|---|---|---|---|---|',
  ];
  for (const [{ name, floor, aim }, byName] of measured) {
    const [curator, holdfast, onEmbedded] = names.map((each) => byName.get(each)!) as [
      number[],
      number[],
      number[],
    ];
    const ratios = holdfast.map((rate, round) => rate / curator[round]!);
    const gains = onEmbedded.map((rate, round) => rate / holdfast[round]!);
    lines.push(
      `| ${name} | ${rate(curator)} | ${rate(holdfast)} | ${spread(ratios)} | ${floor}× | ${aim}× | ${rate(onEmbedded)} | ${spread(gains)} |`,
    );
  }
  return lines;
}

function rate(rates: readonly number[]): string {
  return `${Math.round(median(rates))}/s`;
}

function spread(ratios: readonly number[]): string {
  return `**${median(ratios).toFixed(2)}×** (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
