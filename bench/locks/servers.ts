// The servers that locks are taken on: on loopback, on free ports, with their data in memory.
import { startRedis } from '../../test/support/redis-process.ts';
import { startEnsemble } from '../../test/support/zookeeper-ensemble.ts';
import { STEADY_NODE_FLAGS } from '../node-flags.ts';
import { jvmFlags, startEmbedded, startReal, TICK_MS } from '../server/systems.ts';
import type { ServerKind } from './contestants.ts';
import { startEtcd } from './etcd-process.ts';
import type { Place } from './scenarios.ts';

const HOST = '127.0.0.1';

export interface BenchServer {
  readonly kind: ServerKind;
  /** `host:port`, or three of them. */
  readonly address: string;
  readonly pids: readonly number[];
  stop(): PromiseLike<void>;
}

/** Starts each of these that is needed, and no other. */
export async function startServers(
  kinds: ReadonlySet<ServerKind>,
  place: Place,
): Promise<Map<ServerKind, BenchServer>> {
  const servers = new Map<ServerKind, BenchServer>();
  for (const kind of kinds) servers.set(kind, await starters[kind](place));
  return servers;
}

export async function stopServers(servers: ReadonlyMap<ServerKind, BenchServer>): Promise<void> {
  for (const server of servers.values()) await server.stop();
}

const starters: Readonly<Record<ServerKind, (place: Place) => Promise<BenchServer>>> = {
  async zookeeper(place) {
    if (place === 'ensemble') {
      const ensemble = await startEnsemble({ tickTimeMs: TICK_MS, jvmFlags });
      return {
        kind: 'zookeeper',
        address: ensemble.connectString,
        pids: ensemble.servers.map((server) => server.pid!),
        stop: () => ensemble[Symbol.asyncDispose](),
      };
    }
    const { connectString, pid, process } = await startReal('ZooKeeper', {});
    return {
      kind: 'zookeeper',
      address: connectString,
      pids: [pid],
      stop: () => process[Symbol.asyncDispose](),
    };
  },
  async embedded() {
    const { connectString, pid, stop } = await startEmbedded('embedded', {}, STEADY_NODE_FLAGS);
    return { kind: 'embedded', address: connectString, pids: [pid], stop };
  },
  async redis() {
    const redis = await startRedis();
    return {
      kind: 'redis',
      address: `${HOST}:${redis.port}`,
      pids: [redis.pid],
      stop: () => redis[Symbol.asyncDispose](),
    };
  },
  async etcd() {
    const etcd = await startEtcd();
    return {
      kind: 'etcd',
      address: `${HOST}:${etcd.port}`,
      pids: [etcd.pid],
      stop: () => etcd[Symbol.asyncDispose](),
    };
  },
};
