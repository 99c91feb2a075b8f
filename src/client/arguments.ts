import { pathFault, sequentialPathFault } from '../protocol/paths.ts';

// The edge: what a caller gave is checked here, before anything is sent. Misuse throws what the standard
// library would: TypeError for the wrong kind of thing, RangeError for a number out of bounds.

const INT32_MAX = 2 ** 31 - 1;

export function checkPath(path: string): void {
  reject('path', path, typeof path === 'string' ? pathFault(path) : 'it is not a string');
}

/** For a path that gets a number appended, which may end with /. */
export function checkSequentialPath(path: string): void {
  reject('path', path, typeof path === 'string' ? sequentialPathFault(path) : 'it is not a string');
}

/** The version to compare with; absent means any, and 0 is a version like every other. */
export function checkVersion(version: number | undefined): number {
  if (version === undefined) return -1;
  if (!Number.isInteger(version) || version < -1 || version > INT32_MAX) {
    throw new RangeError(
      `version: ${String(version)} given; an integer from 0 to ${INT32_MAX}, or undefined for any`,
    );
  }
  return version;
}

/** What a node may hold: bytes, a string as UTF-8, or null, which is not the same as nothing. */
export type NodeData = Uint8Array | string | null;

export function checkData(data: NodeData): Uint8Array | null {
  if (data === null || data instanceof Uint8Array) return data;
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  throw new TypeError(`data: ${describe(data)} given; a Uint8Array, a string or null is needed`);
}

export function checkDuration(
  name: string,
  durationMs: number,
  limits: { min: number; max: number },
): number {
  if (!Number.isInteger(durationMs) || durationMs < limits.min || durationMs > limits.max) {
    throw new RangeError(
      `${name}: ${String(durationMs)} given; an integer from ${limits.min} to ${limits.max} is needed`,
    );
  }
  return durationMs;
}

/** One of the keys of a table, or a TypeError that lists them. */
export function checkChoice<T extends object>(
  name: string,
  choice: keyof T & string,
  table: T,
): keyof T & string {
  if (typeof choice === 'string' && Object.hasOwn(table, choice)) return choice;
  throw new TypeError(`${name}: ${describe(choice)} given; allowed are ${Object.keys(table).join(', ')}`);
}

export function checkListener(listener: unknown): void {
  checkFunction('watch', listener);
}

export function checkFunction(name: string, given: unknown): void {
  if (typeof given !== 'function')
    throw new TypeError(`${name}: ${describe(given)} given; a function is needed`);
}

function reject(name: string, given: unknown, fault: string | undefined): void {
  if (fault) throw new TypeError(`${name} ${describe(given)}: ${fault}`);
}

function describe(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : value === null ? 'null' : typeof value;
}
