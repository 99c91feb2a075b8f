/** The door `holdfast/server`: a ZooKeeper-compatible server in this process. */
export { defaultLimits, type ServerLimits } from './server/server-limits.ts';
export { type RunningServer, type ServerOptions, startServer } from './server/start-server.ts';
export { FolderInUseError } from './server/storage/folder-lock.ts';
export { CorruptLogError } from './server/storage/log-format.ts';
export type { AdminOptions } from './server/tcp-admin.ts';
export type { ServerTlsOptions } from './server/tcp-listener.ts';
