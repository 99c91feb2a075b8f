import { permissions } from '../../src/protocol/constants.ts';
import { currentFloor, decodeFloors, encodeFloors, NO_FLOORS } from '../../src/queue/floor-node.ts';
import type { ServerCore } from '../../src/server/server-core.ts';
import { FLOOR_NODE } from './world.ts';

/** For what no client writes. */
export const OPEN = [{ perms: permissions.all, id: { scheme: 'world', id: 'anyone' } }];
export const ASKER = { sessionId: 0n, identities: [] };

/** Sets the floor of tokens as `raiseTokens` does: by so much above what this store has given. */
export function raiseTokens(core: ServerCore, by: number): void {
  const { tree, writes } = core;
  const node = tree.get(FLOOR_NODE);
  const earlier = node ? decodeFloors(FLOOR_NODE, node.data, node.mzxid) : NO_FLOORS;
  const floor = currentFloor(earlier) + core.zxid + BigInt(by);
  const data = Buffer.from(encodeFloors(floor, earlier));
  const create = (path: string, contents: Buffer | null) => {
    const moment = core.nextMoment();
    core.commit(writes.create({ path, data: contents, acl: OPEN, flags: 0 }, 'plain', ASKER, moment), moment);
  };
  const folder = FLOOR_NODE.slice(0, FLOOR_NODE.lastIndexOf('/'));
  if (!tree.get(folder)) create(folder, null);
  if (node) {
    const moment = core.nextMoment();
    core.commit(writes.setData({ path: FLOOR_NODE, data, version: -1 }, ASKER, moment), moment);
  } else create(FLOOR_NODE, data);
  core.tick(); // Sends what this has to tell.
}
