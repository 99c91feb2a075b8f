import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { SharedServer } from './shared-servers.ts';
import { startEnsemble } from './zookeeper-ensemble.ts';
import { startZooKeeper, type ZooKeeperOptions, type ZooKeeperProcess } from './zookeeper-process.ts';

const SHARED_OPTIONS: ZooKeeperOptions = {
  tickTimeMs: 500,
  minSessionTimeoutMs: 1_000,
  maxSessionTimeoutMs: 60_000,
  extendedTypesEnabled: true,
  // Of the credentials in shared-servers.ts, which cannot be imported: vitest lets only tests inject.
  superDigest: 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=',
};

/** Starts the servers all tests share, once for the whole run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const javaClassFolder = await mkdtemp(join(tmpdir(), 'holdfast-java-'));
  const starting = [startZooKeeper(SHARED_OPTIONS), startEnsemble(SHARED_OPTIONS)] as const;
  const started = await Promise.allSettled(starting);
  const stop = async () => {
    for (const result of started) {
      if (result.status === 'fulfilled') await result.value[Symbol.asyncDispose]();
    }
    await rm(javaClassFolder, { recursive: true, force: true });
  };
  const [standalone, ensemble] = started;
  if (standalone.status === 'rejected' || ensemble.status === 'rejected') {
    await stop();
    throw standalone.status === 'rejected' ? standalone.reason : (ensemble as PromiseRejectedResult).reason;
  }
  project.provide('javaClassFolder', javaClassFolder);
  project.provide('sharedStandalone', coordinates(standalone.value));
  project.provide('sharedEnsemble', {
    connectString: ensemble.value.connectString,
    servers: ensemble.value.servers.map(coordinates),
  });
  return stop;
}

function coordinates({ host, port, connectString }: ZooKeeperProcess): SharedServer {
  return { host, port, connectString };
}
