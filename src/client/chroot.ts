/** A path before every path of a client: added on the way out, taken off on the way in. */
export class Chroot {
  readonly #prefix: string;

  /** `prefix` is empty, or a path without a slash at its end. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Whether there is nothing to add. */
  get isRoot(): boolean {
    return this.#prefix === '';
  }

  toServer(path: string): string {
    if (this.isRoot) return path;
    return path === '/' ? this.#prefix : this.#prefix + path;
  }

  /** For a path that gets a number appended: there, a slash at the end is part of the name. */
  toServerSequential(path: string): string {
    return this.#prefix + path;
  }

  fromServer(path: string): string {
    if (this.isRoot) return path;
    if (path === this.#prefix) return '/';
    // Events of /zookeeper/config come with their own path whatever the chroot.
    return path.startsWith(`${this.#prefix}/`) ? path.slice(this.#prefix.length) : path;
  }
}
