import { isServerError } from '../protocol/errors.ts';
import { joinPath, parentOf } from '../protocol/paths.ts';
import { checkPath } from './arguments.ts';
import type { CreateOptions } from './operations-of-multi.ts';
import type { RequestOptions } from './request-options.ts';

/** What working on several nodes needs of a client. */
interface TreeClient {
  create(path: string, data: string, options: CreateOptions & RequestOptions): Promise<unknown>;
  delete(path: string, options: RequestOptions): Promise<void>;
  exists(path: string, options: RequestOptions): Promise<unknown>;
  children(path: string, options: RequestOptions): Promise<string[]>;
}

const DELETE_ROUNDS_MAX = 10;

export async function ensurePath(
  zk: TreeClient,
  path: string,
  options: CreateOptions & RequestOptions,
): Promise<void> {
  checkPath(path);
  const paths: string[] = [];
  for (let current = path; current !== '/'; current = parentOf(current)) paths.unshift(current);
  const created = await Promise.allSettled(paths.map((each) => zk.create(each, '', options)));
  for (const [index, result] of created.entries()) {
    if (result.status === 'fulfilled' || isServerError(result.reason, 'node-exists')) continue;
    // Not being allowed to make a node says nothing about whether it is there.
    const present = isServerError(result.reason, 'no-auth') && (await zk.exists(paths[index]!, options));
    if (!present) throw result.reason;
  }
}

export async function deleteTree(zk: TreeClient, path: string, options: RequestOptions): Promise<void> {
  checkPath(path);
  if (path === '/') throw new TypeError('path "/": the root cannot be deleted');
  for (let round = 1; ; round++) {
    const paths = await subtree(zk, path, options);
    const deleted = await Promise.allSettled(paths.reverse().map((each) => zk.delete(each, options)));
    const reasons = deleted.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    const refusal = reasons.find((reason) => !isServerError(reason, 'no-node'));
    if (refusal === undefined) return;
    // Someone added a child meanwhile: look again, but do not race for ever.
    if (!isServerError(refusal, 'not-empty') || round === DELETE_ROUNDS_MAX) throw refusal;
  }
}

/** A node and everything below it, parents before children; empty if there is no such node. */
async function subtree(zk: TreeClient, path: string, options: RequestOptions): Promise<string[]> {
  try {
    const names = await zk.children(path, options);
    const below = await Promise.all(names.map((name) => subtree(zk, joinPath(path, name), options)));
    return [path, ...below.flat()];
  } catch (error) {
    if (isServerError(error, 'no-node')) return [];
    throw error;
  }
}
