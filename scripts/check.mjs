// Everything that can be said about the code without running it.
import { run } from './setup.mjs';

run(process.execPath, ['scripts/build.mjs']); // First: benchmarks and examples import the package by its name.

const checks = [
  // What has not changed since the last check is not checked again.
  ['types', 'tsc', ['--noEmit', '--incremental', '--tsBuildInfoFile', '.cache/check.tsbuildinfo']],
  ['format and lint', 'biome', ['ci', '.']],
  [
    'layers',
    'depcruise',
    ['--output-type', 'err', 'src', 'simulation', 'test', 'bench', 'scripts', 'examples'],
  ],
  ['tidy', 'tsx', ['scripts/tidy.ts']],
  ['generated docs', 'tsx', ['scripts/generate-docs.ts', '--check']],
];

for (const [name, command, args] of checks) {
  const startedAtMs = performance.now();
  run(`node_modules/.bin/${command}`, args);
  console.log(`check: ${name} ok (${((performance.now() - startedAtMs) / 1000).toFixed(1)} s)`);
}
