// A server in a process of its own that measures its turns, with a tree that makes requests dear:
// `metered-server-process.ts <MeteredOptions as JSON>`. Told anything, it says what its turns have cost since then, and
// what it did between the requests and the answers of the program that behaves.
import type { ServerConnection, ServerLink } from '../../src/server/server-connection.ts';
import { assembleServer } from '../../src/server/start-server.ts';
import { BYSTANDER_TIMEOUT_MS, type MeteredOptions } from './attacked-server.ts';
import { growTree } from './dear-tree.ts';
import { processorMs, TurnMeter } from './turn-meter.ts';

const { tree, ...options } = JSON.parse(process.argv[2]!) as MeteredOptions;
const { running, core } = await assembleServer(options);
growTree(core.tree, core.takeZxid(), tree);
process.on('disconnect', () => process.exit()); // Whoever started it is gone.

let waitsMs: number[] = [];
const askedAtMs = new Map<ServerConnection, number>();
const isBystander = ({ session }: ServerConnection) => session?.timeoutMs === BYSTANDER_TIMEOUT_MS;
const receive = core.receive.bind(core);
core.receive = (connection, chunk) => {
  if (isBystander(connection)) askedAtMs.set(connection, processorMs());
  receive(connection, chunk);
};
const accept = core.accept.bind(core);
core.accept = (link: ServerLink, peer) => {
  const write = link.write.bind(link);
  link.write = (bytes) => {
    write(bytes);
    const atMs = askedAtMs.get(connection);
    askedAtMs.delete(connection);
    if (atMs !== undefined) waitsMs.push(processorMs() - atMs);
  };
  const connection = accept(link, peer);
  return connection;
};

const meter = new TurnMeter();
await meter.report(); // What it took to get here.
process.on('message', async () => {
  const sorted = waitsMs.sort((a, b) => a - b);
  waitsMs = [];
  const waits = { p50Ms: sorted[sorted.length >> 1] ?? 0, maxMs: sorted.at(-1) ?? 0 };
  process.send!({ ...(await meter.report()), waits });
});
process.send!({ port: running.port });
