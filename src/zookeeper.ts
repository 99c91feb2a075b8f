/** The door `holdfast/zookeeper`: a complete ZooKeeper client. */
export type { Log, LogLevel } from './base/log.ts';
export { type AclEntry, acls, digestId, type Permission } from './client/acl.ts';
export type { NodeData } from './client/arguments.ts';
export type { CallOptions } from './client/call-options.ts';
export type { AuthOption, ConnectOptions } from './client/connect-options.ts';
export { type ConnectString, parseConnectString } from './client/connect-string.ts';
export {
  type CreatedInMulti,
  type CreateOptions,
  type MultiRead,
  type MultiReadResults,
  type MultiResults,
  type MultiWrite,
  ops,
} from './client/operations-of-multi.ts';
export type { ReconfigChange } from './client/reconfig-change.ts';
export type {
  EventsOptions,
  ObserveOptions,
  ReadOptions,
  RequestOptions,
  SyncOptions,
  VersionedOptions,
  WatchListener,
} from './client/request-options.ts';
export type { Hold, Session } from './client/session.ts';
export type { ClientEvents } from './client/session-keeper.ts';
export type { TlsOptions } from './client/tcp-tls-options.ts';
export type { Resolve } from './client/tcp-transport.ts';
export type { Watch } from './client/watch.ts';
export {
  connect,
  type NodeState,
  ZooKeeper,
} from './client/zookeeper.ts';
export type { AddWatchMode, CreateMode, NodeEventType, WatchType } from './protocol/constants.ts';
export type { ServerCondition } from './protocol/error-codes.ts';
export {
  AuthFailedError,
  ClosedError,
  ConnectionLossError,
  type ErrorScope,
  isServerError,
  LeaseEndedError,
  MultiError,
  type Outcome,
  ProtocolError,
  QueueFullError,
  RequestTimeoutError,
  ServerBehindError,
  ServerError,
  type SessionLossCause,
  SessionLostError,
  UnreachableError,
  ZkError,
} from './protocol/errors.ts';
export type { ClientInfo, Stat } from './protocol/records.ts';
export type { LeaseOptions } from './session/contact.ts';
export type { SaslCredentials } from './session/sasl-digest-md5.ts';
export type { ServerAddress } from './session/session-io.ts';
export type { WatchEvent } from './session/watch-registry.ts';
