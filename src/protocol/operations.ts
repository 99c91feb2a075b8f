import { MultiReadRequest, MultiReadResponse, MultiRequest, MultiResponse } from './multi.ts';
import { type Codec, nothing } from './record.ts';
import {
  AddWatchRequest,
  AuthPacket,
  Create2Response,
  CreateRequest,
  CreateResponse,
  CreateTtlRequest,
  DeleteRequest,
  ErrorResponse,
  GetAclResponse,
  GetAllChildrenNumberResponse,
  GetChildren2Response,
  GetChildrenResponse,
  GetDataResponse,
  GetEphemeralsRequest,
  GetEphemeralsResponse,
  PathRequest,
  PathWatchRequest,
  ReconfigRequest,
  SaslToken,
  SetAclRequest,
  SetDataRequest,
  SetWatches,
  SetWatches2,
  StatResponse,
  SyncRequest,
  SyncResponse,
  WatchTypeRequest,
  WhoAmIResponse,
} from './records.ts';

/** One operation of the protocol: client and server read the same row. */
export interface Operation<Request = unknown, Reply = unknown> {
  readonly name: string;
  readonly opcode: number;
  readonly request: Codec<Request>;
  readonly reply: Codec<Reply>;
  /** Consumes a zxid, so the leader has seen it by the time it is answered. */
  readonly writes: boolean;
  /** A second run leaves the same state and gives an answer that is as good as the first. */
  readonly repeatable: boolean;
}

function read<Q, R>(name: string, opcode: number, request: Codec<Q>, reply: Codec<R>): Operation<Q, R> {
  return { name, opcode, request, reply, writes: false, repeatable: true };
}

function write<Q, R>(name: string, opcode: number, request: Codec<Q>, reply: Codec<R>): Operation<Q, R> {
  return { name, opcode, request, reply, writes: true, repeatable: false };
}

/** Belongs to one connection: neither a read of the tree nor a write, and void on another connection. */
function connection<Q, R>(name: string, opcode: number, request: Codec<Q>, reply: Codec<R>): Operation<Q, R> {
  return { name, opcode, request, reply, writes: false, repeatable: false };
}

export const operations = {
  create: write('create', 1, CreateRequest, CreateResponse),
  delete: write('delete', 2, DeleteRequest, nothing),
  exists: read('exists', 3, PathWatchRequest, StatResponse),
  getData: read('getData', 4, PathWatchRequest, GetDataResponse),
  setData: write('setData', 5, SetDataRequest, StatResponse),
  getAcl: read('getAcl', 6, PathRequest, GetAclResponse),
  setAcl: write('setAcl', 7, SetAclRequest, StatResponse),
  getChildren: read('getChildren', 8, PathWatchRequest, GetChildrenResponse),
  sync: read('sync', 9, SyncRequest, SyncResponse),
  ping: connection('ping', 11, nothing, nothing),
  getChildren2: read('getChildren2', 12, PathWatchRequest, GetChildren2Response),
  multi: write('multi', 14, MultiRequest, MultiResponse),
  create2: write('create2', 15, CreateRequest, Create2Response),
  reconfig: write('reconfig', 16, ReconfigRequest, GetDataResponse),
  checkWatches: read('checkWatches', 17, WatchTypeRequest, nothing),
  removeWatches: connection('removeWatches', 18, WatchTypeRequest, nothing),
  createContainer: write('createContainer', 19, CreateRequest, Create2Response),
  createTtl: write('createTtl', 21, CreateTtlRequest, Create2Response),
  multiRead: read('multiRead', 22, MultiReadRequest, MultiReadResponse),
  auth: connection('auth', 100, AuthPacket, nothing),
  setWatches: read('setWatches', 101, SetWatches, nothing),
  sasl: connection('sasl', 102, SaslToken, SaslToken),
  getEphemerals: read('getEphemerals', 103, GetEphemeralsRequest, GetEphemeralsResponse),
  getAllChildrenNumber: read('getAllChildrenNumber', 104, PathRequest, GetAllChildrenNumberResponse),
  setWatches2: connection('setWatches2', 105, SetWatches2, nothing),
  addWatch: read('addWatch', 106, AddWatchRequest, ErrorResponse),
  whoAmI: read('whoAmI', 107, nothing, WhoAmIResponse),
  closeSession: write('closeSession', -11, nothing, nothing),
} as const satisfies Record<string, Operation>;

/** The numbers a server answers with `marshalling-error` or `bad-arguments` when a client sends them alone. */
export const opcodeOfCheck = 13;
export const opcodeOfDeleteContainer = 20;

const byOpcode = new Map<number, Operation>(
  Object.values<Operation>(operations).map((operation) => [operation.opcode, operation]),
);

export function operationOf(opcode: number): Operation | undefined {
  return byOpcode.get(opcode);
}

/** xids that are not requests of a user; ordinary ones are positive. */
export const xids = { notification: -1, ping: -2, auth: -4, setWatchesOfCClient: -8 } as const;
