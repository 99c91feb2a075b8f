// The embedded server in a process of its own, told over IPC how to be; says what memory it uses when asked.
import { type ServerOptions, startServer } from 'holdfast/server';

/** What the server's process says of itself. */
export type EmbeddedAnswer =
  | { readonly kind: 'listening'; readonly port: number; readonly startedInMs: number }
  | { readonly kind: 'memory'; readonly heapBytes: number; readonly bufferBytes: number };

/** What it is told. */
export type EmbeddedOrder =
  | { readonly kind: 'start'; readonly options: ServerOptions }
  | { readonly kind: 'tell-memory' }
  | { readonly kind: 'stop' };

const answer = (value: EmbeddedAnswer) => process.send!(value);
let stop: (() => Promise<void>) | undefined;

process.on('message', async (order: EmbeddedOrder) => {
  switch (order.kind) {
    case 'start': {
      const startedAtMs = performance.now();
      const server = await startServer(order.options);
      stop = () => server.stop();
      answer({ kind: 'listening', port: server.port, startedInMs: performance.now() - startedAtMs });
      return;
    }
    case 'tell-memory': {
      for (let pass = 0; pass < 2; pass++) {
        globalThis.gc!();
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { heapUsed, external } = process.memoryUsage();
      answer({ kind: 'memory', heapBytes: heapUsed, bufferBytes: external });
      return;
    }
    case 'stop':
      await stop?.();
      process.exit();
  }
});
process.on('disconnect', () => process.exit()); // The bench is gone: so are we.
