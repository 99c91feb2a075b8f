import { type Clock, systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { type Random, seededRandom } from '../../base/random.ts';
import { joinPath } from '../../protocol/paths.ts';
import { type DataTree, statOf, type TreeChange, type Undo } from '../data-tree.ts';
import type { Transaction } from '../transaction.ts';
import type { Folder } from './folder.ts';
import type { Recovered } from './recover.ts';
import type { SavedSession, SavedState } from './snapshot-format.ts';
import { Store, type StoreOwner } from './store.ts';

export const OPEN_ACL = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

/** A server's worth of state, what it has been promised, and what it was like after each transaction. */
export class Owner implements StoreOwner {
  readonly tree: DataTree;
  readonly sessions: Map<bigint, SavedSession>;
  /** The newest number used. */
  zxid: bigint;
  durableZxid: bigint;
  failure: Error | undefined;
  failureCount = 0;
  /** The picture after each transaction of this life that has not been taken back for good. */
  readonly history: Map<bigint, string>;
  /** Taken back; but they may be in a log that nobody could write to any more. */
  readonly takenBack = new Map<bigint, string>();
  #pending: { readonly zxid: bigint; readonly undo: Undo }[] = [];

  constructor({ tree, sessions, zxid, usedZxid }: Recovered) {
    this.tree = tree;
    this.sessions = new Map(sessions);
    this.zxid = firstZxid(usedZxid);
    this.durableZxid = zxid;
    this.history = new Map([[zxid, this.picture()]]);
  }

  durable(zxid: bigint): void {
    this.durableZxid = zxid;
    this.#pending = this.#pending.filter((pending) => pending.zxid > zxid);
  }

  storeFailed(error: Error): void {
    this.failure = error;
    this.failureCount++;
    for (const { zxid, undo } of this.#pending.reverse()) {
      undo();
      this.takenBack.set(zxid, this.history.get(zxid)!);
      this.history.delete(zxid);
    }
    this.#pending = [];
  }

  storeMended(): void {
    this.failure = undefined;
    this.takenBack.clear();
  }

  state(): SavedState {
    return { zxid: this.zxid, sessions: [...this.sessions.values()], nodes: this.tree.freeze() };
  }

  takeZxid(): bigint {
    this.zxid++;
    return this.zxid;
  }

  perform(transaction: Transaction): Transaction {
    this.zxid = transaction.zxid;
    const undos: Undo[] = [];
    if (transaction.kind === 'open-session') {
      const { sessionId: id, password, timeoutMs } = transaction;
      this.sessions.set(id, { id, password, timeoutMs });
      undos.push(() => this.sessions.delete(id));
    } else {
      if (transaction.kind === 'close-session') {
        const session = this.sessions.get(transaction.sessionId)!;
        this.sessions.delete(session.id);
        undos.push(() => this.sessions.set(session.id, session));
      }
      for (const change of transaction.changes) undos.push(this.tree.apply(change, transaction));
    }
    this.history.set(transaction.zxid, this.picture());
    this.#pending.push({
      zxid: transaction.zxid,
      undo: () => {
        for (const undo of undos.reverse()) undo();
      },
    });
    return transaction;
  }

  /** Everything that is kept, as text: sessions and nodes, whatever order they are in. */
  picture(): string {
    const sessions = [...this.sessions.values()].map(
      ({ id, password, timeoutMs }) => `${id} ${password.toString('hex')} ${timeoutMs}`,
    );
    return [...sessions.sort(), ...picturesOf(this.tree.entries())].join('\n');
  }

  /** A transaction that may come next, of any kind. */
  next(random: Random): Transaction {
    const moment = { zxid: this.takeZxid(), timeMs: 1_000 + Number(this.zxid & 0xffffn) };
    const sessions = [...this.sessions.keys()];
    const sessionId = sessions[random.u32() % (sessions.length || 1)];
    const choice = random.u32() % 10;
    if (choice === 0 || sessionId === undefined) {
      const password = Buffer.from(random.bytes(16));
      return {
        ...moment,
        kind: 'open-session',
        sessionId: (1n << 56n) + moment.zxid,
        password,
        timeoutMs: 4_000,
      };
    }
    if (choice === 1) {
      const changes = this.tree.ephemeralsOf(sessionId).map((path) => ({ kind: 'delete', path }) as const);
      return { ...moment, kind: 'close-session', sessionId, changes };
    }
    if (choice > 7) return { ...moment, kind: 'tree', changes: this.#batch(moment.zxid, sessionId, random) };
    return { ...moment, kind: 'tree', changes: [this.#change(`${moment.zxid}`, sessionId, random)] };
  }

  /** Several creates that stand or fall together. */
  #batch(zxid: bigint, owner: bigint, random: Random): TreeChange[] {
    const parent = `/m-${zxid}`;
    const create = {
      kind: 'create',
      data: Buffer.from(random.bytes(random.u32() % 300)),
      acl: OPEN_ACL,
    } as const;
    return [
      { ...create, path: parent, owner: 0n },
      { ...create, path: `${parent}/a`, owner: 0n },
      { ...create, path: `${parent}/b`, owner },
    ];
  }

  #change(name: string, sessionId: bigint, random: Random): TreeChange {
    const nodes = [...this.tree.entries()].filter(([, node]) => node.czxid > 0n);
    const [path, node] = nodes[random.u32() % (nodes.length || 1)] ?? [];
    const data = random.u32() % 5 === 0 ? null : Buffer.from(random.bytes(random.u32() % 80));
    const choice = random.u32() % 6;
    if (path === undefined || node === undefined || choice < 2) {
      const below = node && node.owner === 0n && choice === 0 ? path! : '/';
      const owner = random.u32() % 3 === 0 ? sessionId : 0n;
      return { kind: 'create', path: joinPath(below, `n-${name}`), data, acl: OPEN_ACL, owner };
    }
    if (choice === 2 && (node.children?.size ?? 0) === 0) return { kind: 'delete', path };
    if (choice === 3) {
      const acl = [{ perms: random.u32() % 32, id: { scheme: 'ip', id: '127.0.0.1' } }];
      return { kind: 'set-acl', path, acl, aversion: node.aversion + 1 };
    }
    return { kind: 'set-data', path, data, version: node.version + 1 };
  }
}

/** One line for each node, in order of their paths. */
export function picturesOf(nodes: Iterable<readonly [string, Parameters<typeof statOf>[0]]>): string[] {
  return Array.from(nodes, ([path, node]) => {
    const stat = Object.values(statOf(node)).join(' ');
    const data = node.data && Buffer.from(node.data).toString('hex');
    return `${path} ${data} ${JSON.stringify(node.acl)} ${stat} ${node.createCount} ${node.owner}`;
  }).sort();
}

function firstZxid(used: bigint): bigint {
  return ((used >> 32n) + 1n) << 32n;
}

/** Looks again at once whether a disk is well. */
export const impatientClock: Clock = {
  ...systemClock,
  at: (_atMs, run) => systemClock.at(systemClock.nowMs(), run),
};

/** A life of a server in this folder. */
export async function open(folder: Folder, logBytesMax = 1 << 15) {
  const { store, recovered } = await Store.open(folder, {
    clock: impatientClock,
    random: seededRandom(7),
    log: silentLog,
    logBytesMax,
    firstZxid,
  });
  const owner = new Owner(recovered);
  store.serve(owner);
  return { store, owner, recovered };
}
