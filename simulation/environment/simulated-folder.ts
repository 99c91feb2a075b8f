import { fraction, type Random } from '../../src/base/random.ts';
import type { AppendFile, Folder, LogFile } from '../../src/server/storage/folder.ts';

const SECTOR_BYTES = 512;

interface SimulatedFile {
  content: Buffer;
  /** What a power cut is sure to leave. */
  durable: Buffer;
  /** What was cut off without a sync: it may be on disk for all that. */
  cutOff: Buffer | undefined;
  /** A sync failed: the system has forgotten what was not on disk, and says of later syncs that all is well. */
  poisoned: boolean;
}

/** One call to the system. A method of the folder makes one or more. */
export interface FolderCall {
  readonly kind:
    | 'list'
    | 'read'
    | 'create'
    | 'write'
    | 'sync'
    | 'cut'
    | 'close'
    | 'rename'
    | 'remove'
    | 'sync-names';
  readonly name: string;
  /** 1 for the first call of all. */
  readonly number: number;
  failed: boolean;
}

type NameChange = (names: Map<string, SimulatedFile>) => void;

/**
 * A folder in memory with a system under it that can stop at any call, lose power, and fail.
 *
 * Bytes that were not synced may be gone after a power cut, sector by sector; names that were not synced may be gone,
 * or there again, one by one. A write that fails leaves half of its bytes; a sync that fails leaves it open what is on
 * disk, and no later sync of that file mends it.
 */
export class SimulatedFolder implements Folder {
  readonly files = new Map<string, SimulatedFile>();
  /** Every call so far. */
  readonly calls: FolderCall[] = [];
  /** Says whether a call fails, and how. */
  fault: ((call: FolderCall) => Error | undefined) | undefined;
  /** How long a call takes; the others go on meanwhile. */
  pause: ((call: FolderCall) => Promise<void>) | undefined;
  /** The process ends at this call: it is not made, and neither it nor any other ever comes back. */
  stopAt: number | undefined;
  /** Resolves when the process has ended. */
  readonly stopped: Promise<void>;
  readonly #stop: () => void;
  /** The names that are on disk, and what happened to them since. */
  #durableNames = new Map<string, SimulatedFile>();
  #nameChanges: NameChange[] = [];

  constructor() {
    let stop = () => {};
    this.stopped = new Promise((resolve) => {
      stop = resolve;
    });
    this.#stop = stop;
  }

  async freeBytes(): Promise<number> {
    return Number.POSITIVE_INFINITY;
  }

  async list(): Promise<string[]> {
    await this.#call('list', '');
    return [...this.files.keys()];
  }

  async read(name: string): Promise<Buffer> {
    await this.#call('read', name);
    return Buffer.from(this.#file(name).content);
  }

  create(name: string): Promise<AppendFile> {
    return this.#create(name);
  }

  /** A write that is synced is two calls: it may be stopped, or fail, between them. */
  async createLog(name: string): Promise<LogFile> {
    const { write, sync, cut, close } = await this.#create(name);
    return {
      write: async (bytes, at) => {
        await write(bytes, at);
        await sync();
      },
      cut,
      close,
    };
  }

  async #create(name: string): Promise<AppendFile & LogFile> {
    await this.#call('create', name);
    if (this.files.has(name)) throw Object.assign(new Error(`${name} exists`), { code: 'EEXIST' });
    const file: SimulatedFile = {
      content: Buffer.alloc(0),
      durable: Buffer.alloc(0),
      cutOff: undefined,
      poisoned: false,
    };
    this.#changeNames((names) => names.set(name, file));
    await this.#syncNames();
    return {
      write: async (bytes, at) => {
        try {
          await this.#call('write', name);
        } catch (error) {
          file.content = written(file.content, bytes.subarray(0, bytes.byteLength >> 1), at);
          throw error;
        }
        file.content = written(file.content, bytes, at);
      },
      sync: () => this.#sync(name, file),
      cut: async (bytes) => {
        await this.#call('cut', name);
        file.cutOff = file.content;
        file.content = Buffer.from(file.content.subarray(0, bytes));
      },
      close: () => this.#call('close', name),
    };
  }

  async truncate(name: string, bytes: number): Promise<void> {
    await this.#call('cut', name);
    const file = this.#file(name);
    file.content = Buffer.from(file.content.subarray(0, bytes));
    await this.#sync(name, file);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#call('rename', from);
    const file = this.#file(from);
    this.#changeNames((names) => {
      names.set(to, file);
      names.delete(from);
    });
    await this.#syncNames();
  }

  async remove(name: string): Promise<void> {
    await this.#call('remove', name);
    if (this.files.has(name)) this.#changeNames((names) => names.delete(name));
  }

  /** What is left when the process was killed: all that it told the system. */
  afterKill(): SimulatedFolder {
    const left = new SimulatedFolder();
    // What was in the system's memory still is: the next process sees it, and a power cut may still take it.
    const copies = new Map<SimulatedFile, SimulatedFile>();
    const copyOf = (file: SimulatedFile) => {
      const copy = copies.get(file) ?? { ...file };
      copies.set(file, copy);
      return copy;
    };
    for (const [name, file] of this.files) left.files.set(name, copyOf(file));
    for (const [name, file] of this.#durableNames) left.#durableNames.set(name, copyOf(file));
    // Changes of names are one change now: all of them, or none.
    const names = new Map(left.files);
    left.#nameChanges = [
      (target) => {
        target.clear();
        for (const [name, file] of names) target.set(name, file);
      },
    ];
    return left;
  }

  /** What is left when the power went: what was synced, and of the rest whatever chance has put on disk. */
  afterPowerCut(random: Random): SimulatedFolder {
    const names = new Map(this.#durableNames);
    for (const change of this.#nameChanges) if (random.u32() % 2 === 0) change(names);
    const left = new SimulatedFolder();
    for (const [name, file] of names) {
      const content = torn(file, random);
      const survivor = { content, durable: content, cutOff: undefined, poisoned: false };
      left.files.set(name, survivor);
      left.#durableNames.set(name, survivor);
    }
    return left;
  }

  /** The same bytes in another folder, all on disk, to be damaged there. */
  copy(): SimulatedFolder {
    const copy = new SimulatedFolder();
    for (const [name, { content }] of this.files) {
      const file = {
        content: Buffer.from(content),
        durable: Buffer.from(content),
        cutOff: undefined,
        poisoned: false,
      };
      copy.files.set(name, file);
      copy.#durableNames.set(name, file);
    }
    return copy;
  }

  async #call(kind: FolderCall['kind'], name: string): Promise<void> {
    const call = { kind, name, number: this.calls.length + 1, failed: false };
    this.calls.push(call);
    if (this.stopAt !== undefined && call.number >= this.stopAt) {
      this.#stop();
      return new Promise(() => {});
    }
    await this.pause?.(call);
    const error = this.fault?.(call);
    if (!error) return;
    call.failed = true;
    throw error;
  }

  async #sync(name: string, file: SimulatedFile): Promise<void> {
    try {
      await this.#call('sync', name);
    } catch (error) {
      file.poisoned = true;
      throw error;
    }
    if (file.poisoned) return;
    file.durable = file.content;
    file.cutOff = undefined;
  }

  #changeNames(change: NameChange): void {
    change(this.files);
    this.#nameChanges.push(change);
  }

  async #syncNames(): Promise<void> {
    await this.#call('sync-names', '');
    this.#durableNames = new Map(this.files);
    this.#nameChanges = [];
  }

  #file(name: string): SimulatedFile {
    const file = this.files.get(name);
    if (!file) throw Object.assign(new Error(`no file ${name}`), { code: 'ENOENT' });
    return file;
  }
}

/** A file with these bytes at this offset. What was there is left alone: it may be what is on disk. */
function written(content: Buffer, bytes: Buffer, at: number): Buffer {
  return Buffer.concat([content.subarray(0, at), bytes, content.subarray(at + bytes.byteLength)]);
}

/** Of what was not synced, each sector is on disk or not, and the file's length is anything in between. */
function torn({ content: latest, durable, cutOff }: SimulatedFile, random: Random): Buffer {
  const content = cutOff && random.u32() % 2 === 0 ? cutOff : latest;
  if (content.byteLength < durable.byteLength) return random.u32() % 2 === 0 ? content : durable;
  const unsynced = content.byteLength - durable.byteLength;
  const left = Buffer.from(
    content.subarray(0, durable.byteLength + Math.floor(fraction(random) * (unsynced + 1))),
  );
  for (let at = 0; at < left.byteLength; at += SECTOR_BYTES) {
    const end = Math.min(left.byteLength, at + SECTOR_BYTES);
    const before = durable.subarray(at, end);
    if (before.equals(left.subarray(at, end)) || random.u32() % 3 !== 0) continue;
    left.fill(0, at, end);
    before.copy(left, at);
  }
  return left;
}
