// How each peer's process is started, and what has to be there for it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { STEADY_NODE_FLAGS } from '../node-flags.ts';
import { installPeers } from '../peers/install-peers.ts';
import type { Contestant, Program, ServerKind } from './contestants.ts';

const file = (name: string) => fileURLToPath(new URL(`./peers/${name}`, import.meta.url));
const JARS = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'zookeeper',
  'guava',
  'slf4j-nop',
].map((jar) => `/usr/share/java/${jar}.jar`);
const CURATOR_PACKAGES = [
  'default-jdk-headless',
  'libcurator-recipes-java',
  'libcurator-framework-java',
  'libcurator-client-java',
];
const DEBIAN_PACKAGES: Readonly<Partial<Record<Program | ServerKind, readonly string[]>>> = {
  zookeeper: ['default-jre-headless', 'zookeeper'],
  redis: ['redis-server'],
  etcd: ['etcd-server', 'etcd-client'],
  curator: CURATOR_PACKAGES,
  kazoo: ['python3-kazoo'],
};

/** Ready to be started. Disposing removes what was compiled. */
export class Programs implements Disposable {
  readonly #classFolder = mkdtempSync(join(tmpdir(), 'holdfast-bench-classes-'));

  /** Installs what these need, where that is possible, and compiles what has to be. */
  static async prepare(contestants: readonly Contestant[]): Promise<Programs> {
    const needed = new Set(contestants.flatMap(({ program, server }) => [program, server]));
    const { installDebianPackages } = (await import(
      new URL('../../scripts/setup.mjs', import.meta.url).href
    )) as { installDebianPackages(who: string, names: readonly string[]): void };
    installDebianPackages('these benchmarks', [
      ...new Set([...needed].flatMap((name) => DEBIAN_PACKAGES[name] ?? [])),
    ]);
    if (needed.has('node-zookeeper-client') || needed.has('redlock') || needed.has('etcd3')) installPeers();
    const programs = new Programs();
    if (needed.has('curator')) {
      execFileSync('javac', ['-d', programs.#classFolder, '-cp', JARS.join(':'), file('CuratorLocks.java')], {
        stdio: ['ignore', 'ignore', 'ignore'], // It warns of annotations that Debian leaves out.
      });
    }
    return programs;
  }

  /** The command of a peer that uses the servers at `address`. */
  command({ program, flags = [] }: Contestant, address: string): [string, ...string[]] {
    switch (program) {
      case 'curator': {
        const classPath = [this.#classFolder, ...JARS].join(':');
        return ['java', '-Xmx1g', '-XX:+UseSerialGC', '-cp', classPath, 'CuratorLocks', address];
      }
      case 'kazoo':
        return ['/usr/bin/python3', file('kazoo-locks.py'), address]; // Debian's, which has its package.
      default:
        return [
          process.execPath,
          ...STEADY_NODE_FLAGS,
          '--import',
          import.meta.resolve('tsx'),
          file(`${program}.ts`),
          address,
          ...flags,
        ];
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#classFolder, { recursive: true, force: true });
  }
}
