// A server in a process of its own, to be attacked: `server-process.ts <options as JSON>`.
import { type ServerOptions, startServer } from '../../src/server.ts';

const server = await startServer(JSON.parse(process.argv[2]!) as ServerOptions);
process.on('disconnect', () => process.exit()); // Whoever started it is gone.
process.send!({ port: server.port });
