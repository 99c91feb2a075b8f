/** A file that is being written. */
export interface AppendFile {
  /** Writes at this offset, which is not behind the end of the file. */
  write(bytes: Buffer, at: number): Promise<void>;
  /** Resolves when everything written is on disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** A log that is being written. */
export interface LogFile {
  /** Writes at this offset, which is not behind the end of the file; resolves when these bytes are on disk. */
  write(bytes: Buffer, at: number): Promise<void>;
  /** Cuts the file to its first `bytes` bytes, without waiting for the disk. */
  cut(bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** One folder of files, as the log and the snapshots need it: a real one, or a simulated one that can lose power. */
export interface Folder {
  /** How much more the disk takes, as far as is known. */
  freeBytes(): Promise<number>;
  list(): Promise<string[]>;
  read(name: string): Promise<Buffer>;
  /** Makes a new file; that it is there is on disk when this resolves. Fails if it exists. */
  create(name: string): Promise<AppendFile>;
  /** As `create`, for a file whose every write is synced. */
  createLog(name: string): Promise<LogFile>;
  /** Cuts a file to its first `bytes` bytes; those, and that it has no more, are on disk when this resolves. */
  truncate(name: string, bytes: number): Promise<void>;
  /** Gives a file another name, replacing what had it, on disk. */
  rename(from: string, to: string): Promise<void>;
  remove(name: string): Promise<void>;
}
