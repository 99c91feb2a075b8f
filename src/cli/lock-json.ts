import type { AuditRecord } from '../locks/audit-log.ts';
import type { ContenderInfo, LockInfo } from '../locks/inspection.ts';

/** What `--json` prints of a contender. Numbers of 64 bits are texts: a double would change them. */
export interface ContenderJson {
  readonly id: string;
  readonly role: string;
  readonly token: string;
  readonly session: string;
  readonly joined: string;
  readonly owner: ContenderInfo['owner'];
  /** Nothing is known of its owner, since its data may not be read. */
  readonly unreadable?: true;
}

/** What `--json` prints of a lock. */
export interface LockJson {
  readonly name: string;
  readonly kind: string;
  readonly holders: readonly ContenderJson[];
  readonly queue: readonly ContenderJson[];
  readonly foreign: readonly string[];
  readonly numbered: number;
  /** Where `kind` is `unreadable`: why. */
  readonly problem?: { readonly code: string; readonly message: string };
}

export function lockJson({ name, kind, holders, queue, foreign, numbered, problem }: LockInfo): LockJson {
  return {
    name,
    kind,
    holders: holders.map(contenderJson),
    queue: queue.map(contenderJson),
    foreign,
    numbered,
    ...(problem && { problem: { code: problem.code, message: problem.message } }),
  };
}

export function contenderJson(contender: ContenderInfo): ContenderJson {
  const { id, role, token, session, since, owner, unreadable } = contender;
  return {
    id,
    role,
    token: String(token),
    session: sessionText(session),
    joined: since.toISOString(),
    owner,
    ...(unreadable && { unreadable }),
  };
}

export function auditJson(record: AuditRecord): object {
  const { token, session, at, ...rest } = record;
  return { ...rest, at: at.toISOString(), token: String(token), session: sessionText(session) };
}

/** As ZooKeeper's own log and `cons` write it. */
export function sessionText(session: bigint): string {
  return `0x${BigInt.asUintN(64, session).toString(16)}`;
}
