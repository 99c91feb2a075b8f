import type { Log } from '../../base/log.ts';
import type { Acl } from '../../protocol/records.ts';
import { DataTree } from '../data-tree.ts';
import type { Transaction } from '../transaction.ts';
import { kindOf, nameOf, zxidOf } from './file-names.ts';
import type { Folder } from './folder.ts';
import { CorruptLogError, decodeLog, decodeLogHeader, type LogHeader } from './log-format.ts';
import { decodeSnapshot, type LoadedState, type SavedSession } from './snapshot-format.ts';

/** What was there when the folder was opened. */
export interface Recovered {
  readonly tree: DataTree;
  readonly sessions: ReadonlyMap<bigint, SavedSession>;
  /** The newest transaction that is on disk; 0n for an empty folder. */
  readonly zxid: bigint;
  /** No number up to this one may be used again: a log was begun with it, though nothing of it may be left. */
  readonly usedZxid: bigint;
  /** What had to be read of logs, beside the snapshot. */
  readonly logBytes: number;
  /** How many logs there are, those included that a snapshot stands for. */
  readonly logCount: number;
}

interface LogFile {
  readonly name: string;
  readonly content: Buffer;
  readonly header: LogHeader;
}

/**
 * Reads what a folder keeps:
 *
 *   1. The newest snapshot that is whole.
 *   2. Every log from there on. Each says which transaction it goes on from: if less than that has been found,
 *      something is missing; if the log before it has more, that was never promised and was taken back.
 *   3. The end of the last log is put on disk, and what a crash left behind it is cut off: a process that was killed
 *      may have left it to the system's memory, and what is promised from now on stands on it.
 *
 * @throws CorruptLogError
 */
export async function recover(folder: Folder, log: Log): Promise<Recovered> {
  const names = (await folder.list()).sort();
  const { state, damaged } = await newestSnapshot(folder, names);
  let recovered: Replayed;
  const tree = state ? new DataTree(state.nodes) : new DataTree();
  const acls = new AclPool();
  const sessions = new Map<bigint, SavedSession>(state?.sessions.map((session) => [session.id, session]));
  try {
    recovered = await replayLogs(folder, names, state?.zxid ?? 0n, (transaction) =>
      replay(transaction, tree, sessions, acls),
    );
  } catch (error) {
    // Without the snapshot the logs do not suffice: that is the damage to tell of.
    throw damaged[0]?.error ?? error;
  }
  for (const { name, error } of damaged) {
    log('error', 'a snapshot is damaged; the one before it and the logs have the same', { error });
    await folder.rename(name, `damaged.${name}`);
  }
  if (recovered.last) await folder.truncate(recovered.last.name, recovered.last.goodBytes);
  let usedZxid = recovered.zxid;
  const logNames = names.filter((name) => kindOf(name) === 'log');
  for (const name of logNames) if (zxidOf(name) > usedZxid) usedZxid = zxidOf(name);
  const { zxid, logBytes } = recovered;
  return { tree, sessions, zxid, usedZxid, logBytes, logCount: logNames.length };
}

async function newestSnapshot(folder: Folder, names: readonly string[]) {
  const damaged: { name: string; error: CorruptLogError }[] = [];
  let state: LoadedState | undefined;
  for (const name of names.filter((name) => kindOf(name) === 'snapshot').reverse()) {
    try {
      state = decodeSnapshot(name, await folder.read(name));
      break;
    } catch (error) {
      if (!(error instanceof CorruptLogError)) throw error;
      // The log that was begun with it has what came after it; if that is gone, nobody knows how far the others go.
      if (!names.includes(nameOf('log', zxidOf(name) + 1n))) throw error;
      damaged.push({ name, error });
    }
  }
  return { state, damaged };
}

interface Replayed {
  readonly zxid: bigint;
  readonly logBytes: number;
  readonly last?: { readonly name: string; readonly goodBytes: number };
}

async function replayLogs(
  folder: Folder,
  names: readonly string[],
  from: bigint,
  perform: (transaction: Transaction) => void,
): Promise<Replayed> {
  let zxid = from;
  let logBytes = 0;
  let last: { name: string; goodBytes: number } | undefined;
  for await (const { log, next } of inPairs(logFiles(folder, names))) {
    const { name, content, header } = log;
    if (header.base > zxid)
      throw new CorruptLogError(
        name,
        0,
        `it goes on from ${header.base}, but the logs before it end at ${zxid}`,
      );
    const promised = next?.header.base;
    const goodBytes = decodeLog(name, content, header, (transaction) => {
      if (transaction.zxid <= zxid) return; // In the snapshot already.
      if (promised !== undefined && transaction.zxid > promised) return; // Taken back when the disk failed.
      perform(transaction);
      zxid = transaction.zxid;
    });
    if (promised !== undefined && zxid < promised && goodBytes < content.byteLength)
      throw new CorruptLogError(name, goodBytes, 'it is cut off, but another log goes on from behind that');
    last = { name, goodBytes };
    if (zxidOf(name) > from) logBytes += goodBytes;
  }
  return { zxid, logBytes, ...(last && { last }) };
}

/** The logs in order. One that was cut off in its very header holds nothing, and is removed; its number stays used. */
async function* logFiles(folder: Folder, names: readonly string[]): AsyncGenerator<LogFile> {
  for (const name of names.filter((name) => kindOf(name) === 'log')) {
    const content = await folder.read(name);
    const header = decodeLogHeader(name, content);
    if (header) yield { name, content, header };
    else await folder.remove(name);
  }
}

async function* inPairs(logs: AsyncIterable<LogFile>): AsyncGenerator<{ log: LogFile; next?: LogFile }> {
  let log: LogFile | undefined;
  for await (const next of logs) {
    if (log) yield { log, next };
    log = next;
  }
  if (log) yield { log };
}

function replay(
  transaction: Transaction,
  tree: DataTree,
  sessions: Map<bigint, SavedSession>,
  acls: AclPool,
): void {
  switch (transaction.kind) {
    case 'open-session': {
      const { sessionId: id, password, timeoutMs } = transaction;
      sessions.set(id, { id, password, timeoutMs });
      return;
    }
    case 'close-session':
      sessions.delete(transaction.sessionId);
      break;
    case 'tree':
  }
  for (const change of transaction.changes) {
    if (change.kind === 'create') (change as { acl: readonly Acl[] }).acl = acls.shared(change.acl);
    tree.apply(change, transaction);
  }
}

/** Most nodes have one of a few access lists: each is kept once. */
class AclPool {
  readonly #lists = new Map<string, readonly Acl[]>();

  shared(acl: readonly Acl[]): readonly Acl[] {
    const key = JSON.stringify(acl);
    const known = this.#lists.get(key);
    if (!known) this.#lists.set(key, acl);
    return known ?? acl;
  }
}
