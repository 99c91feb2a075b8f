import { cp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from '../../src/zookeeper.ts';
import { ZooKeeperProcess } from './zookeeper-process.ts';

/**
 * Restarts a follower with nodes that nobody else has: ephemeral ones of a session that its leader never heard of.
 * ZooKeeper brings such nodes about by itself, when servers crash at bad moments; here the server's data are taken
 * aside, get the nodes, and are put back as if nothing had happened since. Nobody may write meanwhile.
 */
export async function hauntFollower(follower: ZooKeeperProcess, paths: readonly string[]): Promise<void> {
  const zxid = /^Zxid: 0x(\w+)$/m.exec(await follower.fourLetterWord('srvr'))![1]!;
  await follower.stop();
  await using aside = await ZooKeeperProcess.create();
  await cp(filesOf(follower), filesOf(aside), { recursive: true });
  await aside.start();
  await aside.waitUntilServing();
  const owner = await connect(aside.connectString, { sessionTimeoutMs: 60_000 });
  for (const path of paths) await owner.create(path, '', { mode: 'ephemeral' });
  await aside.kill();
  await owner.close();
  await aside.start(); // Which is when it takes a snapshot.
  await aside.waitUntilServing();
  await aside.kill();

  const names = await readdir(filesOf(aside));
  const newest = names
    .filter((name) => name.startsWith('snapshot.'))
    .sort(byNumber)
    .at(-1)!;
  for (const name of await readdir(filesOf(follower))) {
    if (/^(log|snapshot)\./.test(name)) await rm(join(filesOf(follower), name));
  }
  await cp(join(filesOf(aside), newest), join(filesOf(follower), newest));
  await rename(join(filesOf(follower), newest), join(filesOf(follower), `snapshot.${zxid}`));
  await follower.start();
  await follower.waitUntilServing();
}

function filesOf({ dataFolder }: ZooKeeperProcess): string {
  return join(dataFolder, 'data', 'version-2');
}

function byNumber(a: string, b: string): number {
  const [left, right] = [a, b].map((name) => BigInt(`0x${name.split('.')[1]}`));
  return left! < right! ? -1 : 1;
}
