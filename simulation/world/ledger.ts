import { permissions } from '../../src/protocol/constants.ts';
import { parseEntry } from '../../src/queue/entry-name.ts';
import type { ServerCore } from '../../src/server/server-core.ts';
import type { Transaction } from '../../src/server/transaction.ts';
import { REGISTER_FOLDER, usesRegisters } from './registers.ts';
import { GUARDED_FOLDER } from './steps.ts';
import { BATON_FOLDER, CLOSED_FOLDER, FLOOR_NODE, type World } from './world.ts';

const ANYONE = [
  {
    perms: Object.values(permissions).reduce((all, each) => all | each, 0),
    id: { scheme: 'world', id: 'anyone' },
  },
];
const UNREADABLE = [{ perms: permissions.write, id: { scheme: 'world', id: 'anyone' } }];
const NOBODY = { sessionId: 0n, identities: [] };
const ID = /^_c_([0-9a-f-]{36})-/;

/** What the server itself says that has happened: transaction by transaction, and what is there in the end. */
export class Ledger {
  readonly #world: World;
  /** Contenders that are there, by the id in their name. */
  readonly #contenders = new Map<string, string>();
  readonly #pathsOf: (lock: string, token: bigint) => readonly string[];

  /** `pathsOf` tells the nodes that whoever was granted this token of this lock holds by. */
  constructor(world: World, pathsOf: (lock: string, token: bigint) => readonly string[]) {
    this.#world = world;
    this.#pathsOf = pathsOf;
  }

  /** Makes what `guard` writes to, and sets numbers that are not to begin at 0. */
  prepare(core: ServerCore): void {
    const { writes, tree } = core;
    const make = (path: string, kind: 'plain' | 'container', acl = ANYONE) => {
      const moment = core.nextMoment();
      core.commit(writes.create({ path, data: null, acl, flags: 0 }, kind, NOBODY, moment), moment);
    };
    make(GUARDED_FOLDER, 'plain');
    for (const { name } of this.#world.scenario.locks) make(`${GUARDED_FOLDER}/${name}`, 'plain');
    if (usesRegisters(this.#world.scenario)) {
      make(REGISTER_FOLDER, 'plain');
      for (const { name } of this.#world.scenario.locks) make(`${REGISTER_FOLDER}/${name}`, 'plain');
    }
    const stuck = this.#world.scenario.locks.filter(({ firstSequence }) => firstSequence !== undefined);
    const { closedFolder } = this.#world.scenario;
    if (stuck.length > 0 || closedFolder) make('/locks', 'container');
    if (closedFolder) make(CLOSED_FOLDER, 'plain', UNREADABLE);
    for (const { name, firstSequence } of stuck) {
      make(`/locks/${name}`, 'container');
      tree.get(`/locks/${name}`)!.createCount = firstSequence!;
    }
  }

  transacted(transaction: Transaction): void {
    if (transaction.kind === 'open-session') return;
    for (const change of transaction.changes) {
      if (change.kind === 'set-data') {
        if (change.path.startsWith(`${GUARDED_FOLDER}/`)) this.#guarded(change.path, change.data);
        continue;
      }
      const name = change.path.slice(change.path.lastIndexOf('/') + 1);
      const id = ID.exec(name)?.[1];
      if (id === undefined || !change.path.startsWith('/locks/')) continue;
      if (change.kind === 'delete') {
        this.#contenders.delete(id);
      } else if (change.kind === 'create') {
        const other = this.#contenders.get(id);
        // What the disk did not take was taken back, and never was.
        const isThere = other !== undefined && this.#world.server?.core.tree.get(other) !== undefined;
        if (isThere && other !== change.path)
          this.#world.fail('L11', `${change.path} was made beside ${other}`);
        this.#contenders.set(id, change.path);
      }
    }
  }

  /** What a power cut took never was. */
  recovered({ tree }: ServerCore): void {
    for (const [id, path] of this.#contenders) if (!tree.get(path)) this.#contenders.delete(id);
    for (const { name } of this.#world.scenario.locks)
      this.#highest.set(
        `${GUARDED_FOLDER}/${name}`,
        tokenIn(tree.get(`${GUARDED_FOLDER}/${name}`)?.data ?? null),
      );
  }

  readonly #highest = new Map<string, bigint>();

  #guarded(path: string, data: Uint8Array | null): void {
    const tree = this.#world.server?.core.tree;
    const lock = path.slice(GUARDED_FOLDER.length + 1);
    const missing = this.#pathsOf(lock, tokenIn(data)).find((each) => tree && !tree.get(each));
    if (missing)
      this.#world.fail('L1u', `${tokenIn(data)} wrote to ${path} when its node ${missing} was gone`);
    const recipe = this.#world.scenario.locks.find(({ name }) => path.endsWith(`/${name}`))?.recipe;
    if (recipe === 'semaphore' || recipe === 'read-write') return;
    const token = tokenIn(data);
    const highest = this.#highest.get(path) ?? 0n;
    if (token < highest) this.#world.fail('L1u', `token ${token} wrote to ${path} after ${highest}`);
    this.#highest.set(path, token);
  }

  /** Contenders, batons and watches that are there. */
  remains(): { readonly nodes: { lock: string; path: string; czxid: bigint }[]; readonly others: string[] } {
    const core = this.#world.server!.core;
    const { tree } = core;
    const nodes: { lock: string; path: string; czxid: bigint }[] = [];
    const visit = (path: string, lock: string) => {
      const node = tree.get(path);
      if (!node) return;
      if (node.owner > 0n || parseEntry(path.slice(path.lastIndexOf('/') + 1))) {
        nodes.push({ lock, path, czxid: this.#world.tokenOf(node.czxid) });
      }
      for (const name of node.children ?? []) visit(`${path}/${name}`, lock);
    };
    for (const name of tree.get('/locks')?.children ?? []) visit(`/locks/${name}`, name);
    const batons = [...(tree.get(BATON_FOLDER)?.children ?? [])].map((name) => `baton ${name}`);
    // Every session watches the floor of tokens for as long as it lasts.
    const ofFloor = [...core.watches.dataWatches()].find(([path]) => path === FLOOR_NODE)?.[1].size ?? 0;
    const watchCount = core.watches.count - ofFloor;
    const watches = watchCount === 0 ? [] : [`${watchCount} watches`];
    return { nodes, others: [...batons, ...watches] };
  }
}

function tokenIn(data: Uint8Array | null): bigint {
  return BigInt(Buffer.from(data ?? []).toString('latin1') || '0');
}
