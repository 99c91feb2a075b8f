import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';

const HOST = '127.0.0.1';
const PORT_MIN = 10_000;
const PORT_END_DEFAULT = 32_768;
/** Neighbouring process ids start this far apart, so parallel test processes do not race for one port. */
const PORTS_PER_PROCESS = 101;

/**
 * Finds `count` distinct free ports of 127.0.0.1.
 *
 * They lie below the range the kernel takes source ports from. A port inside that range can be taken by any
 * outgoing connection while its server is down for a restart; worse, a client that keeps dialling a dead
 * server inside that range ends up connected to itself.
 */
export async function freePorts(count: number): Promise<number[]> {
  const end = await ephemeralRangeStart();
  const held: Server[] = [];
  const ports: number[] = [];
  try {
    for (let attempt = 0; attempt < end - PORT_MIN && ports.length < count; attempt++) {
      const port = nextCandidate(end);
      const server = await hold(port);
      if (server === undefined) continue;
      held.push(server);
      ports.push(port);
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  }
  if (ports.length < count) {
    throw new Error(`found ${ports.length} of ${count} free ports on ${HOST} from ${PORT_MIN} to ${end - 1}`);
  }
  return ports;
}

let candidateCount = 0;

/** Walks on and never back: a port handed out may not be bound yet when the next caller asks. */
function nextCandidate(end: number): number {
  const offset = process.pid * PORTS_PER_PROCESS + candidateCount++;
  return PORT_MIN + (offset % (end - PORT_MIN));
}

async function ephemeralRangeStart(): Promise<number> {
  const text = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '');
  const start = Number.parseInt(text, 10);
  return start > PORT_MIN + PORTS_PER_PROCESS ? start : PORT_END_DEFAULT;
}

/** Binds the port, or answers undefined if somebody has it. */
function hold(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ host: HOST, port, exclusive: true }, () => resolve(server));
  });
}
