/** The layers of docs/architecture.md: imports go down only, and never in a circle. */
const below = {
  base: [],
  protocol: ['base'],
  session: ['base', 'protocol'],
  client: ['base', 'protocol', 'session'],
  queue: ['base', 'protocol', 'session', 'client'],
  local: ['base'],
  locks: ['base', 'protocol', 'session', 'client', 'queue', 'local'],
  telemetry: ['base', 'locks'],
  server: ['base', 'protocol'],
  daemon: ['base', 'protocol', 'server', 'local'],
  testing: ['base', 'protocol', 'session', 'client', 'queue', 'local', 'locks', 'server'],
  cli: ['base', 'protocol', 'session', 'client', 'queue', 'local', 'locks', 'server'],
};
/** The rooms of simulation/, likewise; each may import all of src/. */
const belowInSimulation = {
  checker: [],
  environment: [],
  scenario: ['checker', 'environment'],
  world: ['checker', 'environment', 'scenario'],
  calls: ['environment'],
  storage: ['environment'],
  runner: ['checker', 'environment', 'scenario', 'world'],
  mutants: ['checker', 'environment', 'scenario', 'world', 'runner'],
};
const tests = '\\.test(-data)?\\.ts$';

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...Object.entries(below).map(([layer, allowed]) => ({
      name: `layer-${layer}`,
      comment: `${layer} may import ${[layer, ...allowed].join(', ')} and nothing else of src/`,
      severity: 'error',
      from: { path: `^src/${layer}/`, pathNot: tests },
      to: { path: '^src/', pathNot: `^src/(${[layer, ...allowed].join('|')})/` },
    })),
    ...Object.entries(belowInSimulation).map(([room, allowed]) => ({
      name: `simulation-${room}`,
      comment: `simulation/${room} may import src/ and ${[room, ...allowed].join(', ')} of simulation/`,
      severity: 'error',
      from: { path: `^simulation/${room}/` },
      to: {
        path: '^(simulation|test|bench|scripts|examples)/',
        pathNot: `^simulation/(${[room, ...allowed].join('|')})/`,
      },
    })),
    {
      name: 'simulated-runs-import-no-module-of-node-or-npm',
      comment: 'Everything in a simulated run comes from its seed.',
      severity: 'error',
      from: { path: '^simulation/(checker|environment|scenario|world)/', pathNot: tests },
      to: {
        dependencyTypes: ['core', 'npm', 'npm-dev', 'npm-peer', 'npm-optional', 'npm-no-pkg', 'unknown'],
      },
    },
    {
      name: 'sockets-only-in-tcp-files',
      severity: 'error',
      from: { path: '^src/', pathNot: `/tcp-[^/]+\\.ts$|${tests}` },
      to: { dependencyTypes: ['core'], path: '^(node:)?(net|tls|dns|dgram|http|https|http2)(/|$)' },
    },
    {
      name: 'pure-layers-import-no-node-module',
      comment: 'protocol and session are pure: hashes come through base/hash.ts, nothing else is needed.',
      severity: 'error',
      from: { path: '^src/(protocol|session)/', pathNot: tests },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'time-and-randomness-only-in-base',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/base/|${tests}` },
      to: { dependencyTypes: ['core'], path: '^(node:)?(timers|perf_hooks|crypto)(/|$)' },
    },
    {
      name: 'no-runtime-dependency-in-the-library',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/(cli|telemetry)/|${tests}` },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional', 'npm-no-pkg', 'unknown'] },
    },
    {
      name: 'source-never-imports-tests',
      severity: 'error',
      comment: 'Neither do the tests beside the source.',
      from: { path: '^src/' },
      to: { path: '^(simulation|test|bench|scripts|examples)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'] },
  },
};
