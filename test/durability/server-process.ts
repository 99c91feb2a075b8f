// A durable server in a process of its own, to be killed: `server-process.ts <folder> <port> <log bytes>`.
import { startServer } from '../../src/server.ts';

const [, , folder, port, logBytesMax] = process.argv as string[] as [string, string, string, string, string];
process.on('disconnect', () => process.exit()); // Whoever started it is gone.
try {
  const server = await startServer({
    folder,
    port: Number(port),
    logBytesMax: Number(logBytesMax),
    limits: { tickMs: 500, sessionTimeoutMsMin: 1_000 },
  });
  process.send!({ port: server.port });
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  process.send!({ error: { code, message } }, () => process.exit(1));
}
