import type { Acl } from '../protocol/records.ts';

const REMEMBERED_MAX = 8;

/**
 * Keeps access lists that are equal once. Nearly all nodes of a tree have one of a few, and one of its own for each
 * would be a third of what a node takes.
 */
export class SharedAcls {
  /** The latest first. A list that falls off is no longer shared with nodes to come; nothing else is lost. */
  readonly #remembered: (readonly Acl[])[] = [];

  /** An equal list that is in use, or this one. Lists are never changed in place, so nobody can tell. */
  share(acl: readonly Acl[]): readonly Acl[] {
    const known = this.#remembered.find((each) => isSame(each, acl));
    if (known) return known;
    this.#remembered.unshift(acl);
    if (this.#remembered.length > REMEMBERED_MAX) this.#remembered.pop();
    return acl;
  }
}

function isSame(a: readonly Acl[], b: readonly Acl[]): boolean {
  if (a === b) return true;
  return (
    a.length === b.length &&
    a.every((entry, index) => {
      const other = b[index]!;
      return (
        entry.perms === other.perms && entry.id.scheme === other.id.scheme && entry.id.id === other.id.id
      );
    })
  );
}
