// The embedded server in a process of its own, told over IPC how to be; says what memory it uses when asked.
import { type ServerOptions, startServer } from 'holdfast/server';

/** What the server's process says of itself. */
export type EmbeddedAnswer =
  | { readonly kind: 'listening'; readonly port: number }
  /** Heap and what hangs off it, after full collections. */
  | { readonly kind: 'memory'; readonly liveBytes: number };

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
      const server = await startServer(order.options);
      stop = () => server.stop();
      answer({ kind: 'listening', port: server.port });
      return;
    }
    case 'tell-memory': {
      for (let pass = 0; pass < 2; pass++) {
        globalThis.gc!();
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { heapUsed, external } = process.memoryUsage();
      answer({ kind: 'memory', liveBytes: heapUsed + external });
      return;
    }
    case 'stop':
      await stop?.();
      process.exit();
  }
});
process.on('disconnect', () => process.exit()); // The bench is gone: so are we.
