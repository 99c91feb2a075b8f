/** `jute.maxbuffer` of a server left as it is: a longer request costs the connection. */
export const REQUEST_BYTES_MAX = 0xfffff;

/** The kinds of node, as the flags of a create request. */
export const createFlags = {
  persistent: 0,
  ephemeral: 1,
  'persistent-sequential': 2,
  'ephemeral-sequential': 3,
  container: 4,
  'persistent-with-ttl': 5,
  'persistent-sequential-with-ttl': 6,
} as const;
/** What kind of node to make. */
export type CreateMode = keyof typeof createFlags;

/** The longest time to live a node can have: 40 bits of milliseconds. */
export const TTL_MS_MAX = 0xffffffffff;

/** The permission bits of an ACL entry. */
export const permissions = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

/** The kinds of event a server sends; the rest are made by clients. */
export const eventTypes = {
  1: 'node-created',
  2: 'node-deleted',
  3: 'node-data-changed',
  4: 'node-children-changed',
} as const;
/** What happened to a node. */
export type NodeEventType = (typeof eventTypes)[keyof typeof eventTypes];

export const addWatchModes = { persistent: 0, 'persistent-recursive': 1 } as const;
/** What a persistent watch covers: a node and its list of children, or everything at and below it. */
export type AddWatchMode = keyof typeof addWatchModes;

/** The numbers of checkWatches and removeWatches. 4 and 5 came with 3.9. */
export const watchTypes = {
  children: 1,
  data: 2,
  any: 3,
  persistent: 4,
  'persistent-recursive': 5,
} as const;
/** Which watches on a path are meant. */
export type WatchType = keyof typeof watchTypes;
