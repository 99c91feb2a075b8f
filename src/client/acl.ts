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

/** @throws TypeError for what is no access list, and for an empty one: ZooKeeper refuses it for every node. */
export function checkAcl(name: string, entries: readonly AclEntry[]): void {
  if (!Array.isArray(entries))
    throw new TypeError(`${name}: ${typeof entries} given; a list of entries is needed`);
  if (entries.length === 0) throw new TypeError(`${name}: an empty list given; at least one entry is needed`);
  for (const entry of entries as readonly unknown[]) {
    const { scheme, id, permissions: names } = (entry ?? {}) as Partial<AclEntry>;
    if (typeof scheme !== 'string' || typeof id !== 'string' || !Array.isArray(names)) {
      throw new TypeError(`${name}: each entry needs a scheme, an id and a list of permissions`);
    }
    for (const permission of names) bitOf(permission, name);
  }
}

function wireOf(entries: readonly AclEntry[]): readonly Acl[] {
  checkAcl('acl', entries);
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

function bitOf(name: Permission, option = 'acl'): number {
  const bit = Object.hasOwn(permissions, name) ? permissions[name] : undefined;
  if (bit === undefined) {
    throw new TypeError(
      `${option}: permission ${String(name)}; allowed are ${Object.keys(permissions).join(', ')}`,
    );
  }
  return bit;
}
