import { describe, expect, test } from 'vitest';
import { permissions } from '../../src/protocol/constants.ts';
import { errorCodes } from '../../src/protocol/error-codes.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations, xids } from '../../src/protocol/operations.ts';
import { ReplyHeader } from '../../src/protocol/records.ts';
import { digestIdentity } from '../../src/server/access.ts';
import { node, requestFrame } from '../../src/server/memory-client.test-data.ts';
import { startServer } from '../../src/server/start-server.ts';
import { SUPER_USER_CREDENTIALS, sharedStandalone } from '../support/shared-servers.ts';
import { type Address, RawPeer } from './raw-peer.ts';

/** Of the credentials above. */
const SUPER_DIGEST = 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=';
const OWNER = 'owner:secret';
const credentials = {
  owner: OWNER,
  other: 'other:secret',
  none: undefined,
  super: SUPER_USER_CREDENTIALS,
} as const;
type Who = keyof typeof credentials;
type Permission = 'read' | 'write' | 'create' | 'delete' | 'admin';
const PERMISSIONS = ['read', 'write', 'create', 'delete', 'admin'] as const satisfies readonly Permission[];

interface Tried {
  readonly name: string;
  readonly operation: keyof typeof operations;
  /** At a node that has one child. */
  record(path: string): unknown;
  /** What the owner needs on the node: any of these. */
  readonly needs: readonly Permission[];
}
const at = (path: string) => ({ path, watch: false });
const versioned = (path: string) => ({ path, version: -1 });

const tried: readonly Tried[] = [
  { name: 'create', operation: 'create', record: (path) => node(`${path}/new`), needs: ['create'] },
  { name: 'create2', operation: 'create2', record: (path) => node(`${path}/new`), needs: ['create'] },
  {
    name: 'createContainer',
    operation: 'createContainer',
    record: (path) => node(`${path}/new`, null, 4),
    needs: ['create'],
  },
  { name: 'delete', operation: 'delete', record: (path) => versioned(`${path}/child`), needs: ['delete'] },
  { name: 'exists', operation: 'exists', record: at, needs: ['read'] },
  { name: 'getData', operation: 'getData', record: at, needs: ['read'] },
  { name: 'getChildren', operation: 'getChildren', record: at, needs: ['read'] },
  { name: 'getChildren2', operation: 'getChildren2', record: at, needs: ['read'] },
  {
    name: 'getAllChildrenNumber',
    operation: 'getAllChildrenNumber',
    record: (path) => ({ path }),
    needs: ['read'],
  },
  { name: 'getAcl', operation: 'getAcl', record: (path) => ({ path }), needs: ['read', 'admin'] },
  {
    name: 'setData',
    operation: 'setData',
    record: (path) => ({ ...versioned(path), data: null }),
    needs: ['write'],
  },
  {
    name: 'setAcl',
    operation: 'setAcl',
    record: (path) => ({ ...versioned(path), acl: node('/').acl }),
    needs: ['admin'],
  },
  {
    name: 'multi: check',
    operation: 'multi',
    record: (path) => [{ op: 'check', request: versioned(path) }],
    needs: ['read'],
  },
  {
    name: 'multi: setData',
    operation: 'multi',
    record: (path) => [{ op: 'setData', request: { ...versioned(path), data: null } }],
    needs: ['write'],
  },
  {
    name: 'multi: create',
    operation: 'multi',
    record: (path) => [{ op: 'create', request: node(`${path}/new`) }],
    needs: ['create'],
  },
  {
    name: 'multi: delete',
    operation: 'multi',
    record: (path) => [{ op: 'delete', request: versioned(`${path}/child`) }],
    needs: ['delete'],
  },
  {
    name: 'multiRead: getData',
    operation: 'multiRead',
    record: (path) => [{ op: 'getData', request: at(path) }],
    needs: ['read'],
  },
  {
    name: 'multiRead: getChildren',
    operation: 'multiRead',
    record: (path) => [{ op: 'getChildren', request: at(path) }],
    needs: ['read'],
  },
];

/** One peer that asks one thing after the other. */
class Asker {
  readonly #peer: RawPeer;
  #xid = 0;

  private constructor(peer: RawPeer) {
    this.#peer = peer;
  }

  static async as(address: Address, auth: string | undefined): Promise<Asker> {
    const asker = new Asker(await RawPeer.connected(address, { timeOut: 30_000 }));
    if (auth !== undefined)
      await asker.ask('auth', { type: 0, scheme: 'digest', auth: Buffer.from(auth) }, xids.auth);
    return asker;
  }

  /** The error of the answer, or of the first result in it that has one; and who it says may do what. */
  async ask(name: keyof typeof operations, record: unknown, xid = ++this.#xid): Promise<string> {
    this.#peer.send(requestFrame(xid, name, record));
    const input = new JuteReader(await this.#peer.frame());
    const { err } = ReplyHeader.read(input);
    if (err !== 0) return `${err}`;
    const reply = operations[name].reply.read(input);
    if (name === 'getAcl')
      return `0 ${(reply as unknown as { acl: { id: { id: string } }[] }).acl.map(({ id }) => id.id)}`;
    if (!Array.isArray(reply)) return '0';
    return `${reply.find((result) => result.kind === 'error' && result.err !== 0)?.err ?? 0}`;
  }

  close(): Promise<void> {
    return this.#peer[Symbol.asyncDispose]();
  }
}

/** What each may do on nodes that give their owner one permission and nobody else any. */
async function matrixOf(address: Address): Promise<Record<string, string>> {
  const root = `/access-${process.pid}`;
  const master = await Asker.as(address, credentials.super);
  await master.ask('create', node(root));
  const matrix: Record<string, string> = {};
  let count = 0;
  for (const who of Object.keys(credentials) as Who[]) {
    const asker = await Asker.as(address, credentials[who]);
    for (const permission of PERMISSIONS) {
      for (const { name, operation, record } of tried) {
        const path = `${root}/${count++}`;
        const acl = [{ perms: permissions[permission], id: digestIdentity(OWNER) }];
        await master.ask('create', { ...node(path), acl });
        await master.ask('create', node(`${path}/child`));
        matrix[`${who}, ${permission}: ${name}`] = await asker.ask(operation, record(path));
        for (const each of [`${path}/child`, `${path}/new`, path])
          await master.ask('delete', versioned(each));
      }
    }
    await asker.close();
  }
  expect(await master.ask('delete', versioned(root))).toBe('0');
  await master.close();
  return matrix;
}

/** What it should be, by the rules. */
function matrixByRule(existsNeedsRead: boolean): Record<string, string> {
  const matrix: Record<string, string> = {};
  for (const who of Object.keys(credentials) as Who[])
    for (const permission of PERMISSIONS)
      for (const { name, needs } of tried) {
        const free = name === 'exists' && !existsNeedsRead;
        const allowed = free || who === 'super' || (who === 'owner' && needs.includes(permission));
        const owner = digestIdentity(OWNER).id;
        // The hash of a password is for those who may change it.
        const shown = who === 'super' || permission === 'admin' ? owner : 'owner:x';
        const answer = name === 'getAcl' ? `0 ${shown}` : '0';
        matrix[`${who}, ${permission}: ${name}`] = allowed ? answer : `${errorCodes['no-auth']}`;
      }
  return matrix;
}

describe(`${tried.length} operations by four identities under each of five permissions`, () => {
  test('are allowed by the embedded server as the rules say', async () => {
    await using server = await startServer({ superDigest: SUPER_DIGEST });
    expect(await matrixOf(server)).toEqual(matrixByRule(true));
  });

  test('are allowed by ZooKeeper alike, but that exists needs no READ', async () => {
    expect(await matrixOf(sharedStandalone())).toEqual(matrixByRule(false));
  });
});
