import { fraction, type Random } from '../base/random.ts';
import type { AppendFile, Folder } from '../server/storage/folder.ts';

interface SimulatedFile {
  /** What a power cut leaves. */
  durableBytes: number;
  content: Buffer;
}

/**
 * A folder in memory that can lose power: what was not synced may be gone, whole or in part, and so may names that
 * were not synced. Errors can be ordered for the next write or sync.
 */
export class SimulatedFolder implements Folder {
  readonly files = new Map<string, SimulatedFile>();
  /** Thrown by the next `write`, once. */
  writeError: Error | undefined;
  /** Thrown by the next `sync`, once. */
  syncError: Error | undefined;

  async list(): Promise<string[]> {
    return [...this.files.keys()];
  }

  async read(name: string): Promise<Buffer> {
    return Buffer.from(this.#file(name).content);
  }

  async create(name: string): Promise<AppendFile> {
    if (this.files.has(name)) throw Object.assign(new Error(`${name} exists`), { code: 'EEXIST' });
    const file: SimulatedFile = { durableBytes: 0, content: Buffer.alloc(0) };
    this.files.set(name, file);
    return {
      write: async (bytes) => {
        const { writeError } = this;
        this.writeError = undefined;
        if (writeError) throw writeError;
        file.content = Buffer.concat([file.content, bytes]);
      },
      sync: async () => {
        const { syncError } = this;
        this.syncError = undefined;
        if (syncError) throw syncError;
        file.durableBytes = file.content.byteLength;
      },
      close: async () => {},
    };
  }

  async truncate(name: string, bytes: number): Promise<void> {
    const file = this.#file(name);
    file.content = Buffer.from(file.content.subarray(0, bytes));
    file.durableBytes = Math.min(file.durableBytes, bytes);
  }

  async rename(from: string, to: string): Promise<void> {
    this.files.set(to, this.#file(from));
    this.files.delete(from);
  }

  async remove(name: string): Promise<void> {
    this.files.delete(name);
  }

  /** The power goes: of what was not synced, a random part from its beginning is left. */
  powerCut(random: Random): void {
    for (const [name, file] of this.files) {
      const unsynced = file.content.byteLength - file.durableBytes;
      const left = file.durableBytes + Math.floor(fraction(random) * (unsynced + 1));
      // Another object: whoever had the file open is dead, and what it still does reaches nothing.
      this.files.set(name, { content: Buffer.from(file.content.subarray(0, left)), durableBytes: left });
    }
  }

  /** The same bytes in another folder, to be damaged there. */
  copy(): SimulatedFolder {
    const copy = new SimulatedFolder();
    for (const [name, { content, durableBytes }] of this.files) {
      copy.files.set(name, { content: Buffer.from(content), durableBytes });
    }
    return copy;
  }

  #file(name: string): SimulatedFile {
    const file = this.files.get(name);
    if (!file) throw Object.assign(new Error(`no file ${name}`), { code: 'ENOENT' });
    return file;
  }
}
