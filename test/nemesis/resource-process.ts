// What the locks protect, in a process of its own with a log of its own: one half checks tokens, the other does not.
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { Fence, StaleTokenError } from '../../src/holdfast.ts';
import { nowMs, Recorder } from './recorder.ts';
import type { WriteAnswer, WriteRequest } from './resource-client.ts';

const recorder = new Recorder(process.argv[2]!);
const fences = new Map<string, Fence>();

function admit({ lock, token, mode }: WriteRequest): WriteAnswer['outcome'] {
  const fence = fences.get(lock) ?? new Fence();
  fences.set(lock, fence);
  try {
    // A reader has no part in the order of writers; it must only not have been overtaken by one.
    if (mode === 'write') fence.admit(BigInt(token));
    else if (BigInt(token) < fence.highest) return 'refused';
    return 'applied';
  } catch (error) {
    if (error instanceof StaleTokenError) return 'refused';
    throw error;
  }
}

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => {}); // A worker was killed.
  createInterface({ input: socket }).on('line', (line) => {
    const request = JSON.parse(line) as WriteRequest;
    const outcome = admit(request);
    const { lock, token, mode, id } = request;
    const write = { kind: 'wrote', atMs: nowMs(), mode, token: BigInt(token) } as const;
    recorder.record({ ...write, resource: `fenced ${lock}`, outcome, fenced: true });
    recorder.record({ ...write, resource: `open ${lock}`, outcome: 'applied', fenced: false });
    socket.write(`${JSON.stringify({ id, outcome } satisfies WriteAnswer)}\n`);
  });
});
server.listen({ host: '127.0.0.1', port: 0 }, () => {
  process.send!({ port: (server.address() as { port: number }).port });
});
