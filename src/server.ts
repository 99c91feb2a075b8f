/** The door `holdfast/server`: a ZooKeeper-compatible server in this process. */
export { defaultLimits, type ServerLimits } from './server/server-limits.ts';
export { type RunningServer, type ServerOptions, startServer } from './server/start-server.ts';
export type { ServerTlsOptions } from './server/tcp-listener.ts';
