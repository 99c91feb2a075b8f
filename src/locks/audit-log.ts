import { processFacts } from '../base/process-facts.ts';
import { type MultiWrite, ops } from '../client/operations-of-multi.ts';
import { isServerError } from '../protocol/errors.ts';
import type { ContenderInfo, LookBounds } from './inspection.ts';
import type { LockContext } from './lock-context.ts';
import { decodeOwner, type Owner } from './owner.ts';

/** That someone asked for a lock, or took it from its holder. */
export interface AuditRecord {
  /** `asked`: the holder was asked to let go. `released`: its node was removed. */
  readonly action: 'asked' | 'released';
  readonly lockName: string;
  /** By the clock of whoever did it. */
  readonly at: Date;
  readonly by: string;
  readonly reason: string;
  /** The holder: its id, token and session, and what it said of itself. */
  readonly holder: string;
  readonly token: bigint;
  readonly session: bigint;
  readonly owner: Owner;
}

interface Entry {
  readonly action: AuditRecord['action'];
  readonly name: string;
  readonly contender: ContenderInfo;
  readonly reason: string;
  readonly by: string | undefined;
}

/** Of one lock; the oldest go first. */
const RECORDS_MAX = 100;
const REASON_CHARACTERS_MAX = 1_000;

/**
 * Records of interventions, in ZooKeeper beside the locks: `<auditFolder>/<lock>/record-<number>`, the last hundred of
 * each lock. Whoever may write there can forge them: see `folderAcl`.
 */
export class AuditLog {
  readonly #context: LockContext;
  readonly #folder: string;

  constructor(context: LockContext, folder: string) {
    this.#context = context;
    this.#folder = folder;
  }

  /** Makes the folder that an entry goes to. */
  async prepare(name: string, bounds: LookBounds): Promise<void> {
    const { zk, store } = this.#context;
    await zk.ensurePath(`${this.#folder}/${name}`, {
      ...bounds,
      ...(store.facts.folderAcl && { acl: store.facts.folderAcl }),
    });
  }

  /** A record, and the write that leaves it: to be done in one transaction with what it tells of. */
  entry({ action, name, contender, reason, by = operator() }: Entry): {
    readonly record: AuditRecord;
    readonly write: MultiWrite<unknown>;
  } {
    const { clock, root, store } = this.#context;
    const { id, token, session, owner } = contender;
    const at = new Date(clock.wallMs());
    const text = reason.slice(0, REASON_CHARACTERS_MAX);
    const record = { action, lockName: name, at, by, reason: text, holder: id, token, session, owner };
    const { lockName: _, ...said } = record;
    const data = JSON.stringify({ path: `${root}/${name}`, ...said }, (_key, value) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    const acl = store.facts.folderAcl && { acl: store.facts.folderAcl };
    const path = `${this.#folder}/${name}/record-`;
    return { record, write: ops.create(path, data, { mode: 'persistent-sequential', ...acl }) };
  }

  /** The oldest first. What is no record, or one of a lock under another root, is left out. */
  async read(name: string, bounds: LookBounds): Promise<AuditRecord[]> {
    const { zk, root } = this.#context;
    const records = await Promise.all(
      (await this.#names(name, bounds)).map(async (each) => {
        try {
          const { data } = await zk.get(`${this.#folder}/${name}/${each}`, bounds);
          return decodeRecord(data, `${root}/${name}`);
        } catch (error) {
          // Trimmed meanwhile, or somebody else's who lets nobody read it: that must not hide the others.
          if (isServerError(error, 'no-node') || isServerError(error, 'no-auth')) return undefined;
          throw error;
        }
      }),
    );
    return records.flatMap((record) => (record ? [{ ...record, lockName: name }] : []));
  }

  /**
   * Removes what is more than is kept. Two who do so at once remove the same ones. Never fails: what the records tell of
   * has been done, and the next one who adds a record trims as well.
   */
  async trim(name: string, bounds: LookBounds): Promise<void> {
    try {
      const names = await this.#names(name, bounds);
      const surplus = names.slice(0, Math.max(0, names.length - RECORDS_MAX));
      await Promise.all(surplus.map((each) => this.#remove(`${this.#folder}/${name}/${each}`, bounds)));
    } catch (error) {
      this.#context.log('info', 'old audit records were left', { lock: name, error });
    }
  }

  async #remove(path: string, bounds: LookBounds): Promise<void> {
    try {
      await this.#context.zk.delete(path, bounds);
    } catch (error) {
      if (!isServerError(error, 'no-node')) throw error;
    }
  }

  async #names(name: string, bounds: LookBounds): Promise<string[]> {
    try {
      const names = await this.#context.zk.children(`${this.#folder}/${name}`, bounds);
      return names.filter((each) => each.startsWith('record-')).sort();
    } catch (error) {
      if (isServerError(error, 'no-node')) return [];
      throw error;
    }
  }
}

function operator(): string {
  const { userName, hostName } = processFacts();
  return userName === '' ? hostName : `${userName}@${hostName}`;
}

function decodeRecord(data: Uint8Array | null, path: string): Omit<AuditRecord, 'lockName'> | undefined {
  try {
    const said = JSON.parse(Buffer.from(data ?? []).toString('utf8'));
    const known = said.path === path && (said.action === 'asked' || said.action === 'released');
    const at = new Date(said.at);
    if (!known || Number.isNaN(at.getTime())) return undefined;
    return {
      action: said.action,
      at,
      by: String(said.by),
      reason: String(said.reason),
      holder: String(said.holder),
      token: BigInt(said.token),
      session: BigInt(said.session),
      owner: decodeOwner(Buffer.from(JSON.stringify(said.owner ?? {}))),
    };
  } catch {
    return undefined; // Somebody else's, or damaged: not worth the others.
  }
}
