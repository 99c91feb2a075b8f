import { mkdir, open, readdir, readFile, rename, rm, statfs, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import type { AppendFile, Folder } from './folder.ts';

/** A folder on disk. A name that was made, changed or taken away is on disk when the call resolves. */
export class DiskFolder implements Folder {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  static async open(path: string): Promise<DiskFolder> {
    await mkdir(path, { recursive: true, mode: 0o700 });
    return new DiskFolder(path);
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#path);
    return bavail * bsize;
  }

  list(): Promise<string[]> {
    return readdir(this.#path);
  }

  read(name: string): Promise<Buffer> {
    return readFile(join(this.#path, name));
  }

  async create(name: string): Promise<AppendFile> {
    const file = await open(join(this.#path, name), 'wx', 0o600);
    try {
      await this.#syncNames();
    } catch (error) {
      await file.close();
      throw error;
    }
    return {
      async write(bytes, at) {
        let written = 0;
        while (written < bytes.byteLength) {
          const left = bytes.byteLength - written;
          written += (await file.write(bytes, written, left, at + written)).bytesWritten;
        }
      },
      sync: () => file.datasync(),
      cut: (bytes) => file.truncate(bytes),
      close: () => file.close(),
    };
  }

  async truncate(name: string, bytes: number): Promise<void> {
    const path = join(this.#path, name);
    await truncate(path, bytes);
    const file = await open(path, 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async rename(from: string, to: string): Promise<void> {
    await rename(join(this.#path, from), join(this.#path, to));
    await this.#syncNames();
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#path, name), { force: true });
  }

  /** A file's bytes on disk are of no use while its name is not. */
  async #syncNames(): Promise<void> {
    const folder = await open(this.#path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}
