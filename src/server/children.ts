import { nameOf, parentOf } from '../protocol/paths.ts';
import type { PathMap } from './path-map.ts';

const LENGTH_BYTES = 4;
/** Beyond this the encoder counts faster than a loop. */
const SHORT_NAME_LENGTH = 48;

/**
 * The children of a node, and what is counted of them and below them. A question that would otherwise go through a
 * million nodes is answered by a number that each change keeps right on its way up.
 */
export class Children implements Iterable<string> {
  /** The path of the node they belong to. */
  readonly path: string;
  /** Those of the node above, of which this node is one; undefined for the root. */
  parent: Children | undefined;
  /** How many nodes there are below this one, at any depth. */
  descendantCount = 0;
  /** What the names take in an answer. */
  nameBytes = 0;
  readonly #names = new Set<string>();

  constructor(path: string, parent: Children | undefined) {
    this.path = path;
    this.parent = parent;
  }

  get size(): number {
    return this.#names.size;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    this.#names.add(name);
    this.nameBytes += LENGTH_BYTES + utf8BytesOf(name);
    for (let at: Children | undefined = this; at; at = at.parent) at.descendantCount++;
  }

  delete(name: string): void {
    this.#names.delete(name);
    this.nameBytes -= LENGTH_BYTES + utf8BytesOf(name);
    for (let at: Children | undefined = this; at; at = at.parent) at.descendantCount--;
  }

  /** The names as they are now. */
  names(): readonly string[] {
    return [...this.#names];
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.#names.values();
  }
}

/** Who is whose child, which the paths say. Returns a path without a parent, if there is one. */
export function linkChildren(nodes: PathMap<{ children: Children | undefined }>): string | undefined {
  for (const path of nodes.keys()) {
    if (path === '/') continue;
    const parentPath = parentOf(path);
    const parent = nodes.get(parentPath);
    if (!parent) return path;
    parent.children ??= new Children(parentPath, undefined);
  }
  for (const [path, { children }] of nodes) {
    if (children && path !== '/') children.parent = nodes.get(parentOf(path))!.children;
  }
  for (const path of nodes.keys()) if (path !== '/') nodes.get(parentOf(path))!.children!.add(nameOf(path));
  return undefined;
}

function utf8BytesOf(text: string): number {
  if (text.length > SHORT_NAME_LENGTH) return Buffer.byteLength(text);
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) > 0x7f) return Buffer.byteLength(text);
  }
  return text.length;
}
