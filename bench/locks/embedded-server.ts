// The embedded server in a process of its own; says where it listens.
import { startServer } from 'holdfast/server';

const server = await startServer();
console.log(server.connectString);
