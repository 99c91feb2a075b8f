import { Deadline, systemClock } from '../base/clock.ts';
import { systemRandom } from '../base/random.ts';
import { socketAddress } from '../base/socket-address.ts';
import { type ConnectOptions, readOptions } from '../client/connect-options.ts';
import { EnsuredTransport } from '../client/ensured-transport.ts';
import { TcpTransport } from '../client/tcp-transport.ts';
import { connect, type ZooKeeper } from '../client/zookeeper.ts';
import { ensureLocalServer } from '../local/ensure-local-server.ts';

/** What `servers` says for the server of this user on this machine. */
export const LOCAL = 'local';
const TIMEOUT_MS = 15_000;

/** Connects to the local server, starting it if need be: now, and whenever it is found to have ended. */
export async function connectLocally(options: ConnectOptions): Promise<ZooKeeper> {
  const { clock = systemClock, random = systemRandom, timeoutMs = TIMEOUT_MS, signal } = options;
  readOptions(LOCAL, options); // What cannot be is refused before a server is started for it.
  const deadline = new Deadline(clock, timeoutMs);
  const first = await ensureLocalServer({ clock, timeoutMs, ...(signal && { signal }) });
  const ensure = async () => addressOf(await ensureLocalServer({ clock }));
  return connect(socketAddress(first.socketPath), {
    ...options,
    timeoutMs: Math.ceil(deadline.remainingMs()),
    transport: new EnsuredTransport(new TcpTransport({ random }), ensure, addressOf(first)),
  });
}

function addressOf({ socketPath }: { readonly socketPath: string }): { host: string; port: number } {
  return { host: socketPath, port: 0 };
}
