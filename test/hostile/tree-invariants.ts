import { joinPath, nameOf, parentOf, pathFault } from '../../src/protocol/paths.ts';
import { aclBytesOf, kindOf } from '../../src/server/data-tree.ts';
import type { ServerCore } from '../../src/server/server-core.ts';

/** What must hold of a server between any two requests. @throws Error naming what does not. */
export function checkInvariants(core: ServerCore): void {
  const { tree, sessions, watches, connections } = core;
  const hold = (condition: boolean, what: () => string) => {
    if (!condition) throw new Error(what());
  };
  let childCount = 0;
  let dataBytes = 0;
  let aclBytes = 0;
  let longAclCount = 0;
  let ephemeralCount = 0;
  let perishableCount = 0;
  const perishable = new Set(tree.perishable());
  const ephemerals = new Map([...tree.sessionsWithEphemerals()]);
  for (const [path, node] of tree.entries()) {
    hold(pathFault(path) === undefined, () => `${JSON.stringify(path)} is no path: ${pathFault(path)}`);
    if (path !== '/') {
      const siblings = tree.get(parentOf(path))?.children;
      hold(siblings?.has(nameOf(path)) === true, () => `${path} is no child of its parent`);
    }
    for (const name of node.children ?? []) {
      childCount++;
      hold(
        tree.get(joinPath(path, name)) !== undefined,
        () => `${path} has a child ${name} that is not there`,
      );
    }
    dataBytes += path.length + (node.data?.byteLength ?? 0);
    aclBytes += aclBytesOf(node.acl);
    if (node.acl.length > 8) longAclCount++;
    const kind = kindOf(node.owner);
    if (kind === 'ephemeral') {
      ephemeralCount++;
      hold(ephemerals.get(node.owner)?.has(path) === true, () => `${path} is not listed under its session`);
      hold(sessions.get(node.owner) !== undefined, () => `${path} has outlived its session`);
      hold((node.children?.size ?? 0) === 0, () => `${path} is ephemeral and has children`);
    } else if (kind !== 'persistent') {
      perishableCount++;
      hold(perishable.has(path), () => `${path} is not listed as perishable`);
    }
  }
  const equal = (what: string, counted: number, real: number) =>
    hold(counted === real, () => `${what} is ${counted}, and really ${real}`);
  equal('the count of nodes', tree.nodeCount, childCount + 1);
  equal('the count below the root', tree.countDescendants('/'), childCount);
  for (const [path, { children }] of tree.entries()) {
    let below = 0;
    let nameBytes = 0;
    for (const name of children ?? []) {
      below += 1 + tree.countDescendants(joinPath(path, name));
      nameBytes += 4 + Buffer.byteLength(name);
    }
    equal(`the count below ${path}`, tree.countDescendants(path), below);
    equal(`the length of the names in ${path}`, children?.nameBytes ?? 0, nameBytes);
  }
  equal('dataBytes', tree.dataBytes, dataBytes);
  equal('aclBytes', tree.aclBytes, aclBytes);
  equal('the count of long access lists', tree.longAclCount, longAclCount);
  equal('the count of ephemeral nodes', tree.ephemeralCount, ephemeralCount);
  equal('the count of perishable nodes', perishable.size, perishableCount);
  let outstandingCount = 0;
  for (const connection of connections) {
    outstandingCount += connection.outstandingCount;
    const { session } = connection;
    hold(!connection.over, () => 'a connection that is over is kept');
    hold(!session || session.connection === connection, () => 'a connection has the session of another');
  }
  equal('outstandingCount', core.outstandingCount, outstandingCount);
  for (const [path, watchers] of watches.dataWatches())
    for (const watcher of watchers.keys())
      hold(connections.has(watcher), () => `${path} is watched by a connection that is gone`);
  let pathBytes = 0;
  for (const connection of connections) pathBytes += watches.pathBytesOf(connection);
  equal('pathBytes of watches', watches.pathBytes, pathBytes);
}
