// A client that behaves, in a process of its own, so that it measures the server and not whoever attacks it:
// `probe-process.ts <port>`. Told anything, it says how long its requests have taken since it was told last.
import { connect } from '../../src/zookeeper.ts';

const zk = await connect(`127.0.0.1:${process.argv[2]}`, { sessionTimeoutMs: 20_000 });
let latenciesMs: number[] = [];
let lost = false;
zk.on('lost', () => {
  lost = true;
});
process.on('disconnect', () => process.exit()); // Whoever started it is gone.
process.on('message', () => {
  const sorted = latenciesMs.sort((a, b) => a - b);
  latenciesMs = [];
  process.send!({
    count: sorted.length,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    maxMs: sorted.at(-1) ?? 0,
    lost,
  });
});
process.send!('ready');

const PAUSE_MS = 3;
for (;;) {
  const startedAtMs = performance.now();
  await zk.exists('/');
  latenciesMs.push(performance.now() - startedAtMs);
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
