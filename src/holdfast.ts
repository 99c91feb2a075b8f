/** The door `holdfast`: fenced locks on ZooKeeper. */
export type { AclEntry } from './client/acl.ts';
export type { CallOptions } from './client/call-options.ts';
export type { ConnectOptions } from './client/connect-options.ts';
export { ops } from './client/operations-of-multi.ts';
export { LocalServerError } from './local/local-server-error.ts';
export type { AuditRecord } from './locks/audit-log.ts';
export { Fence, ZooKeeperFence } from './locks/fence.ts';
export type { WaitOptions } from './locks/give-up.ts';
export { connect, Holdfast, type HoldfastOptions } from './locks/holdfast.ts';
export type { ContenderInfo, LockInfo, LockKind } from './locks/inspection.ts';
export type { ForceReleaseOptions, RevokeOptions } from './locks/intervention.ts';
export { type Leader, LeaderElection, Leadership } from './locks/leader-election.ts';
export { type AcquireOptions, type Attempt, Lock } from './locks/lock.ts';
export type { AcquireMessage, HoldMessage, LockChannels, LockUse } from './locks/lock-diagnostics.ts';
export {
  ContenderEvictedError,
  ForeignNodeError,
  LockError,
  LockLostError,
  LockReleasedError,
  LockRevokedError,
  LockTimeoutError,
  LockUnreachableError,
  LockUpgradeError,
  NotHolderError,
  StaleTokenError,
  WrongKindError,
} from './locks/lock-errors.ts';
export { type FencingToken, type LockEvents, LockLease } from './locks/lock-lease.ts';
export { MultiLock } from './locks/multi-lock.ts';
export { Mutex } from './locks/mutex.ts';
export type { MutexOptions } from './locks/mutex-options.ts';
export type { Owner, OwnerFacts } from './locks/owner.ts';
export {
  ReadLock,
  type ReadLockOptions,
  ReadWriteLock,
  WriteLock,
  type WriteOptions,
} from './locks/read-write-lock.ts';
export { Semaphore, type SemaphoreOptions } from './locks/semaphore.ts';
export { SimpleLock } from './locks/simple-lock.ts';
export type { TokenState } from './locks/token-floor.ts';
export { UpgradableLease, UpgradableLock } from './locks/upgradable-lock.ts';
export {
  type GrantedLock,
  type LockGrantedCallback,
  LockManager,
  type LockMode,
  type LockRequestOptions,
  type LockSnapshot,
  type LocksSnapshot,
} from './locks/web-locks.ts';
export type { ReleaseBound } from './locks/work-under-lock.ts';
export { RequestTimeoutError, UnreachableError, ZkError } from './protocol/errors.ts';
export { ForeignDataError } from './queue/foreign-data-error.ts';
