import { constants, fdatasync, write } from 'node:fs';
import { type FileHandle, open, readdir, readFile, rename, rm, statfs, truncate } from 'node:fs/promises';
import { platform } from 'node:os';
import { join, resolve } from 'node:path';
import { makeFolders } from '../../base/make-folders.ts';
import type { AppendFile, Folder, LogFile } from './folder.ts';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
/**
 * On Linux a write to a file that was opened with this is synced as by `fdatasync` when it comes back: one way to the
 * thread pool and back instead of two. Other systems mean less by it, or do not know it.
 */
const SYNCS_WRITES = platform() === 'linux' ? constants.O_DSYNC : 0;

/** A folder on disk. A name that was made, changed or taken away is on disk when the call resolves. */
export class DiskFolder implements Folder {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  static async open(path: string): Promise<DiskFolder> {
    makeFolders(resolve(path));
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
    const file = await this.#create(name, NEW_FILE);
    return {
      write: (bytes, at) => writeAll(file, bytes, at),
      sync: () => sync(file),
      close: () => file.close(),
    };
  }

  async createLog(name: string): Promise<LogFile> {
    const file = await this.#create(name, NEW_FILE | SYNCS_WRITES);
    return {
      write: SYNCS_WRITES
        ? (bytes, at) => writeAll(file, bytes, at)
        : async (bytes, at) => {
            await writeAll(file, bytes, at);
            await sync(file);
          },
      cut: (bytes) => file.truncate(bytes),
      close: () => file.close(),
    };
  }

  async #create(name: string, flags: number): Promise<FileHandle> {
    const file = await open(join(this.#path, name), flags, 0o600);
    try {
      await this.#syncNames();
    } catch (error) {
      await file.close();
      throw error;
    }
    return file;
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

// By callbacks: a `FileHandle`'s own methods take several promises for each call, which is as long as the call itself.

function writeAll({ fd }: FileHandle, bytes: Buffer, at: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const writeFrom = (start: number) => {
      write(fd, bytes, start, bytes.byteLength - start, at + start, (error, count) => {
        if (error) reject(error);
        else if (start + count < bytes.byteLength) writeFrom(start + count);
        else resolve();
      });
    };
    writeFrom(0);
  });
}

function sync({ fd }: FileHandle): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(fd, (error) => (error ? reject(error) : resolve()));
  });
}
