import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../test/support/free-port.ts';
import { ServerChild } from '../../test/support/server-child.ts';
import { until } from '../../test/support/until.ts';
import { memoryFolder } from '../../test/support/zookeeper-process.ts';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 60_000;

/** One etcd on loopback, its data in memory where there is such a folder. */
export async function startEtcd(): Promise<
  AsyncDisposable & { readonly port: number; readonly pid: number }
> {
  const [clientPort, peerPort] = await freePorts(2);
  const folder = await mkdtemp(join(memoryFolder() ?? tmpdir(), 'holdfast-etcd-'));
  const clientUrl = `http://${HOST}:${clientPort}`;
  const peerUrl = `http://${HOST}:${peerPort}`;
  const settings = {
    name: 'bench',
    'data-dir': join(folder, 'data'),
    'listen-client-urls': clientUrl,
    'advertise-client-urls': clientUrl,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `bench=${peerUrl}`,
    'log-level': 'error',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = await ServerChild.start(folder, ['etcd', ...options]);
  try {
    await until('etcd serves', () => serves(clientUrl, child), START_TIMEOUT_MS);
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
  return { port: clientPort!, pid: child.pid, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

async function serves(url: string, child: ServerChild): Promise<boolean> {
  if (child.exited) throw new Error(`etcd exited; its log says:\n${await child.log()}`);
  try {
    return (await (await fetch(`${url}/health`)).text()).includes('"true"');
  } catch {
    return false; // Not listening yet.
  }
}
