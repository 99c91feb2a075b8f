import { describe, expect, test } from 'vitest';
import type { MultiOp } from '../protocol/multi.ts';
import type { Acl } from '../protocol/records.ts';
import { digestIdentity } from './access.ts';
import { DataTree, type Moment, statOf } from './data-tree.ts';
import { refusalOf } from './refusal-of.test-data.ts';
import { defaultLimits } from './server-limits.ts';
import { type Asker, WriteOperations } from './write-operations.ts';

const OPEN: readonly Acl[] = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const CLOSED: readonly Acl[] = [{ perms: 31, id: digestIdentity('ann:secret') }];
const STRANGER: Asker = { sessionId: 7n, identities: [{ scheme: 'ip', id: '127.0.0.1' }] };
const ANN: Asker = { sessionId: 8n, identities: [digestIdentity('ann:secret')] };
const NOW: Moment = { zxid: 100n, timeMs: 5_000 };

const node = (path: string, flags = 0, acl: readonly Acl[] | null = OPEN) => ({
  path,
  data: null,
  acl,
  flags,
});

/** /open, /open/child, /closed and /own (for Ann alone), /closed/child, /ephemeral. */
function world(): { tree: DataTree; writes: WriteOperations } {
  const tree = new DataTree();
  const writes = new WriteOperations(tree, { ...defaultLimits, nodesMax: 100, ttlNodes: true });
  const moment: Moment = { zxid: 1n, timeMs: 1_000 };
  for (const path of ['/open', '/open/child']) writes.create(node(path), 'plain', STRANGER, moment);
  for (const path of ['/closed', '/closed/child', '/own'])
    writes.create(node(path, 0, CLOSED), 'plain', ANN, moment);
  writes.create(node('/ephemeral', 1), 'plain', STRANGER, moment);
  return { tree, writes };
}

describe('a create is refused for the first of', () => {
  // Each row is wrong in the ways of the rows below it too, as far as one request can be.
  test.each<[string, Parameters<typeof node>, string]>([
    ['its flags', ['no-slash', 77, []], 'bad-arguments'],
    ['a path without a slash', ['no-slash', 0, []], 'bad-arguments'],
    ['a NUL', ['/missing/\0', 0, []], 'bad-arguments'],
    ['its access list', ['/missing/..', 0, []], 'invalid-acl'],
    ['its parent not being there', ['/missing/..'], 'no-node'],
    ['not being allowed to', ['/closed/..'], 'no-auth'],
    ['its path', ['/ephemeral/..'], 'bad-arguments'],
    ['being there already', ['/open/child'], 'node-exists'],
    ['its parent being ephemeral', ['/ephemeral/child'], 'no-children-for-ephemerals'],
  ])('%s', (_reason, request, condition) => {
    const { writes } = world();
    expect(refusalOf(() => writes.create(node(...request), 'plain', STRANGER, NOW))).toBe(condition);
  });

  test.each([
    ['flags without a time', 0, 5n, 'bad-arguments'],
    ['no time', 5, 0n, 'bad-arguments'],
    ['a negative time', 5, -1n, 'bad-arguments'],
    ['a time beyond 40 bits', 5, 0x10000000000n, 'bad-arguments'],
    ['nothing', 6, 0xffffffffffn, undefined],
  ])('a time to live with %s', (_reason, flags, ttl, condition) => {
    const { writes } = world();
    expect(refusalOf(() => writes.create(node('/t', flags), { ttl }, STRANGER, NOW))).toBe(condition);
  });
});

describe('a delete is refused for the first of', () => {
  test.each([
    ['a path without a slash', 'no-slash', 0, 'bad-arguments'],
    ['being the root', '/', 0, 'bad-arguments'],
    ['being the configuration', '/zookeeper/config', 0, 'bad-arguments'],
    ['its parent not being there', '/missing/child', 9, 'no-node'],
    ['not being allowed to, though it is not there', '/closed/missing', 9, 'no-auth'],
    ['not being there', '/open/missing', 9, 'no-node'],
    ['its version', '/open', 9, 'bad-version'],
    ['its children', '/open', 0, 'not-empty'],
    ['nothing, though its own access list says no', '/own', -1, undefined],
  ])('%s', (_reason, path, version, condition) => {
    const { writes } = world();
    expect(refusalOf(() => writes.delete({ path, version }, STRANGER, NOW))).toBe(condition);
  });
});

describe('setData and setAcl are refused for the first of', () => {
  test.each([
    ['their path', '/missing/', OPEN, 9, ['bad-arguments', 'bad-arguments']],
    ['the access list', '/missing', [], 9, ['no-node', 'invalid-acl']],
    ['the node not being there', '/missing', OPEN, 9, ['no-node', 'no-node']],
    ['not being allowed to', '/closed', OPEN, 9, ['no-auth', 'no-auth']],
    ['the version', '/open', OPEN, 9, ['bad-version', 'bad-version']],
    ['nothing', '/open', OPEN, 0, [undefined, undefined]],
  ] as const)('%s', (_reason, path, acl, version, conditions) => {
    const { writes } = world();
    expect([
      refusalOf(() => writes.setData({ path, data: null, version }, STRANGER, NOW)),
      refusalOf(() => writes.setAcl({ path, acl, version }, STRANGER, NOW)),
    ]).toEqual(conditions);
  });
});

describe('a multi', () => {
  const createOp = (path: string, flags = 0): MultiOp => ({ op: 'create', request: node(path, flags) });

  test('that fails changes nothing, and says which operation it was', () => {
    const { tree, writes } = world();
    const before = statOf(tree.get('/open')!);
    const ops: MultiOp[] = [
      createOp('/open/n-', 2),
      { op: 'setData', request: { path: '/open', data: Buffer.from('x'), version: -1 } },
      { op: 'check', request: { path: '/open', version: 9 } },
      { op: 'delete', request: { path: '/open/child', version: -1 } },
    ];
    const { result, changes, happenings } = writes.multi(ops, STRANGER, NOW);
    expect(result.map((each) => each.kind === 'error' && each.err)).toEqual([0, 0, -103, -2]);
    expect([changes, happenings]).toEqual([[], []]);
    expect(statOf(tree.get('/open')!)).toEqual(before);
    expect(tree.get('/open')!.createCount).toBe(1);
  });

  test('shows each operation what the ones before it did', () => {
    const { writes } = world();
    const { result, happenings } = writes.multi(
      [createOp('/open/n-', 2), createOp('/open/n-', 2), createOp('/e', 1), createOp('/e/child')],
      STRANGER,
      NOW,
    );
    expect(result.map((each) => each.kind === 'error' && each.err)).toEqual([0, 0, 0, -108]);
    expect(happenings).toEqual([]);
    const second = writes.multi([createOp('/open/n-', 2), createOp('/open/n-', 2)], STRANGER, NOW);
    expect(second.result).toEqual([
      { kind: 'create', path: '/open/n-0000000001' },
      { kind: 'create', path: '/open/n-0000000002' },
    ]);
  });

  test('with what cannot be read in it is refused as a whole, and changes nothing', () => {
    const { tree, writes } = world();
    const unreadable: MultiOp = {
      op: 'create',
      request: node('/n', 0, [{ perms: 31, id: { scheme: 'digest', id: null } }]),
    };
    expect(refusalOf(() => writes.multi([createOp('/m'), unreadable], STRANGER, NOW))).toBe(
      'marshalling-error',
    );
    expect(tree.get('/m')).toBeUndefined();
  });
});
