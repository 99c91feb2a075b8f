import { sha1 } from '../base/hash.ts';
import { permissions } from '../protocol/constants.ts';
import type { Acl } from '../protocol/records.ts';

/** What an entry of an access list may allow; `all` is the five others together. */
export type Permission = keyof typeof permissions;

/** One entry of a node's access list: who may do what. */
export interface AclEntry {
  readonly scheme: string;
  readonly id: string;
  readonly permissions: readonly Permission[];
}

const world = { scheme: 'world', id: 'anyone' } as const;

/** Access lists for common needs. */
export const acls = {
  /** Anyone may do anything: ZooKeeper's default. */
  open: [{ ...world, permissions: ['all'] }],
  /** Anyone may read. */
  readOnly: [{ ...world, permissions: ['read'] }],
  /** Whoever this client has authenticated as may do anything; nobody else anything. */
  creatorOnly: [{ scheme: 'auth', id: '', permissions: ['all'] }],
} as const satisfies Record<string, readonly AclEntry[]>;

/** The id of a `digest` entry for a user and password, hashed as the server does. */
export function digestId(user: string, password: string): string {
  return `${user}:${sha1(`${user}:${password}`).toString('base64')}`;
}

/** What nearly every node is made with; never changed by anyone, so one is enough. */
const wireOpen: readonly Acl[] = wireOf(acls.open);

export function toWireAcl(entries: readonly AclEntry[]): readonly Acl[] {
  return entries === acls.open ? wireOpen : wireOf(entries);
}

function wireOf(entries: readonly AclEntry[]): readonly Acl[] {
  if (entries.length === 0) {
    throw new TypeError('acl: an empty list given; at least one entry is needed');
  }
  return entries.map(({ scheme, id, permissions: names }) => ({
    perms: names.reduce((bits, name) => bits | bitOf(name), 0),
    id: { scheme, id },
  }));
}

export function fromWireAcl(acl: readonly Acl[]): AclEntry[] {
  return acl.map(({ perms, id }) => ({
    scheme: id.scheme,
    id: id.id ?? '',
    permissions:
      perms === permissions.all
        ? ['all']
        : (Object.keys(permissions) as Permission[]).filter(
            (name) => name !== 'all' && (perms & permissions[name]) !== 0,
          ),
  }));
}

function bitOf(name: Permission): number {
  const bit = permissions[name];
  if (bit === undefined) {
    throw new TypeError(
      `acl: permission ${String(name)}; allowed are ${Object.keys(permissions).join(', ')}`,
    );
  }
  return bit;
}
