// A server that says what it logs: to be run where few files may be open.
import { startServer } from '../../src/server.ts';

const server = await startServer({
  log: (level, message, fields) => process.send!({ level, message, fields }),
});
process.on('disconnect', () => process.exit()); // Whoever started it is gone.
process.send!({ port: server.port });
