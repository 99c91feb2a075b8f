// A program that behaves, in a process of its own: `bystander-process.ts <port>`. It holds one lock all the time, takes
// and releases another again and again, and says, told anything, how long that has taken since it was told last.
import { connect } from '../../src/holdfast.ts';
import { BYSTANDER_TIMEOUT_MS } from './attacked-server.ts';

const holdfast = await connect({
  servers: `127.0.0.1:${process.argv[2]}`,
  sessionTimeoutMs: BYSTANDER_TIMEOUT_MS,
});
const held = await holdfast.mutex('held').acquire();
let lost: string | undefined;
held.signal.addEventListener('abort', () => {
  lost = String(held.signal.reason);
});
let latenciesMs: number[] = [];
process.on('disconnect', () => process.exit()); // Whoever started it is gone.
process.on('message', () => {
  const sorted = latenciesMs.sort((a, b) => a - b);
  latenciesMs = [];
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0;
  process.send!({ count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: sorted.at(-1) ?? 0, lost });
});
process.send!('ready');

const PAUSE_MS = 3;
const lock = holdfast.mutex('taken');
for (;;) {
  const startedAtMs = performance.now();
  const lease = await lock.acquire();
  await lease.release();
  latenciesMs.push(performance.now() - startedAtMs);
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
