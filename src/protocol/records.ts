import {
  boolean,
  buffer,
  int,
  long,
  nullableUstring,
  nullableVector,
  record,
  remembering,
  ustring,
  type ValueOf,
  vector,
} from './record.ts';

// Same order and names as zookeeper.jute, so that the two can be read side by side.

export const RequestHeader = record({ xid: int, type: int });
export const ReplyHeader = record({ xid: int, zxid: long, err: int });
export type ReplyHeader = ValueOf<typeof ReplyHeader>;

export const Stat = record({
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  dataLength: int,
  numChildren: int,
  pzxid: long,
});
/** What the server knows of a node besides its data. Times are milliseconds of the server's wall clock. */
export type Stat = ValueOf<typeof Stat>;

/** kazoo writes an empty id as null, so a reader must take both. */
export const Id = record({ scheme: ustring, id: nullableUstring });
export const Acl = record({ perms: int, id: Id });
export type Acl = ValueOf<typeof Acl>;

/** Without the trailing readOnly byte, which `handshake.ts` adds and looks for. */
export const ConnectRequest = record({
  protocolVersion: int,
  lastZxidSeen: long,
  timeOut: int,
  sessionId: long,
  passwd: buffer,
});
export const ConnectResponse = record({
  protocolVersion: int,
  timeOut: int,
  sessionId: long,
  passwd: buffer,
});

/** Read by servers only, who never change an access list in place. */
const CreateAcl = remembering(nullableVector(Acl));
export const CreateRequest = record({
  path: ustring,
  data: buffer,
  acl: CreateAcl,
  flags: int,
});
export const CreateTtlRequest = record({
  path: ustring,
  data: buffer,
  acl: CreateAcl,
  flags: int,
  ttl: long,
});
export const CreateResponse = record({ path: ustring });
export const Create2Response = record({ path: ustring, stat: Stat });
export const DeleteRequest = record({ path: ustring, version: int });
export const PathRequest = record({ path: ustring });
export const PathWatchRequest = record({ path: ustring, watch: boolean });
export const StatResponse = record({ stat: Stat });
export const GetDataResponse = record({ data: buffer, stat: Stat });
export const SetDataRequest = record({ path: ustring, data: buffer, version: int });
export const GetAclResponse = record({ acl: vector(Acl), stat: Stat });
export const SetAclRequest = record({ path: ustring, acl: nullableVector(Acl), version: int });
export const GetChildrenResponse = record({ children: vector(ustring) });
export const GetChildren2Response = record({ children: vector(ustring), stat: Stat });
export const CheckVersionRequest = record({ path: ustring, version: int });
/** `sync` echoes any path, also none. */
export const SyncRequest = record({ path: nullableUstring });
export const SyncResponse = record({ path: nullableUstring });
export const ReconfigRequest = record({
  joiningServers: nullableUstring,
  leavingServers: nullableUstring,
  newMembers: nullableUstring,
  curConfigId: long,
});
export const WatchTypeRequest = record({ path: ustring, type: int });
export const AddWatchRequest = record({ path: ustring, mode: int });
export const ErrorResponse = record({ err: int });
export const SetWatches = record({
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
});
export const SetWatches2 = record({
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
  persistentWatches: vector(ustring),
  persistentRecursiveWatches: vector(ustring),
});
export const AuthPacket = record({ type: int, scheme: ustring, auth: buffer });
export const SaslToken = record({ token: buffer });
export const GetEphemeralsRequest = record({ prefixPath: nullableUstring });
export const GetEphemeralsResponse = record({ ephemerals: vector(ustring) });
export const GetAllChildrenNumberResponse = record({ totalNumber: int });
export const ClientInfo = record({ authScheme: ustring, user: ustring });
/** One identity that a server knows a connection by. */
export type ClientInfo = ValueOf<typeof ClientInfo>;
export const WhoAmIResponse = record({ clientInfo: vector(ClientInfo) });
export const WatcherEvent = record({ type: int, state: int, path: ustring });
export type WatcherEvent = ValueOf<typeof WatcherEvent>;
export const MultiHeader = record({ type: int, done: boolean, err: int });
