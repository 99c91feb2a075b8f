import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * A file system of its own in a file, mounted: ext4, so that a copy of the file is what a power cut would leave on the
 * disk. What programs wrote and did not sync is in the system's memory and not in the copy.
 */
export class DiskImage implements AsyncDisposable {
  readonly path: string;
  readonly #folder: string;
  readonly #file: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, 'disk.img');
    this.path = join(folder, 'mounted');
  }

  static async create(options: { readonly megabytes: number }): Promise<DiskImage> {
    return DiskImage.#make(async (file) => {
      await run('truncate', ['-s', `${options.megabytes}M`, file]);
      await run('mkfs.ext4', ['-q', '-F', file]);
    });
  }

  /** What a power cut now would leave: mounting it replays the journal, as starting the machine does. */
  afterPowerCut(): Promise<DiskImage> {
    return DiskImage.#make(async (file) => void (await run('cp', ['--sparse=always', this.#file, file])));
  }

  static async #make(fill: (file: string) => Promise<void>): Promise<DiskImage> {
    const image = new DiskImage(await mkdtemp(join(tmpdir(), 'holdfast-disk-')));
    try {
      await fill(image.#file);
      await mkdir(image.path);
      // The system's own habit of syncing every few seconds is put off: what is on disk was synced by the server.
      await run('mount', ['-o', 'loop,commit=300', image.#file, image.path]);
    } catch (error) {
      await rm(image.#folder, { recursive: true, force: true });
      throw error;
    }
    return image;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Detaches the loop device as well.
    await run('umount', [this.path]).catch(() => run('umount', ['-l', this.path]));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A small file system in memory, to be filled up. */
export class SmallDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(options: { readonly kilobytes: number }): Promise<SmallDisk> {
    const path = await mkdtemp(join(tmpdir(), 'holdfast-small-'));
    try {
      await run('mount', ['-t', 'tmpfs', '-o', `size=${options.kilobytes}k`, 'tmpfs', path]);
    } catch (error) {
      await rm(path, { recursive: true, force: true });
      throw error;
    }
    return new SmallDisk(path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run('umount', [this.path]).catch(() => run('umount', ['-l', this.path]));
    await rm(this.path, { recursive: true, force: true });
  }
}

/** Why disks cannot be mounted here; undefined where they can: as root, with loop devices. */
export async function whyNotMountable(): Promise<string | undefined> {
  try {
    await (await DiskImage.create({ megabytes: 8 }))[Symbol.asyncDispose]();
    await (await SmallDisk.create({ kilobytes: 64 }))[Symbol.asyncDispose]();
    return undefined;
  } catch (error) {
    return (error as Error).message.trim();
  }
}
