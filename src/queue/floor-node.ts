import { ForeignDataError } from './foreign-data-error.ts';

/**
 * A floor of tokens: whoever joined a queue after the transaction `since` has a token above `floor`. The token of an
 * entry is its czxid, and the newest floor that was set before it.
 */
export interface TokenFloor {
  readonly floor: bigint;
  readonly since: bigint;
}

/** All floors of a store, the oldest first; none in a store that nobody has moved to. */
export type TokenFloors = readonly TokenFloor[];

export const NO_FLOORS: TokenFloors = [];

/** A czxid stays below 2^62 for centuries: so does the sum of both below 2^63, which fences and databases can hold. */
export const FLOOR_MAX = 2n ** 62n;
/** So many earlier floors are kept: for contenders that were there before them. */
const EARLIER_MAX = 100;

const NAME = 'token-floor';
const NUMBER = /^\d{1,19}$/;

/** Beside the folder of batons, which is the same for all who share locks. */
export function floorPathOf(batonFolder: string): string {
  return `${batonFolder.slice(0, batonFolder.lastIndexOf('/'))}/${NAME}`;
}

/** Rises with the czxid, whatever floors there are: floors are set in their order, and each is above the one before. */
export function tokenAt(floors: TokenFloors, czxid: bigint): bigint {
  for (let index = floors.length - 1; index >= 0; index--) {
    const { floor, since } = floors[index]!;
    if (since < czxid) return floor + czxid;
  }
  return czxid;
}

/** The floor that counts for whoever joins now. */
export function currentFloor(floors: TokenFloors): bigint {
  return floors.at(-1)?.floor ?? 0n;
}

/** What the node holds when `floor` is set on top of these. Since when it counts is what the node's mzxid will say. */
export function encodeFloors(floor: bigint, earlier: TokenFloors): string {
  const rows = earlier.slice(-EARLIER_MAX).map((each) => ({
    floor: String(each.floor),
    since: String(each.since),
  }));
  return JSON.stringify({ floor: String(floor), earlier: rows });
}

/** @throws ZK_FOREIGN_DATA. A token that was made with a wrong floor could not be told from a good one. */
export function decodeFloors(path: string, data: Uint8Array | null, mzxid: bigint): TokenFloors {
  const floors = parseFloors(data, mzxid);
  if (!floors) throw new ForeignDataError(path, data, 'a floor of tokens');
  return floors;
}

function parseFloors(data: Uint8Array | null, mzxid: bigint): TokenFloors | undefined {
  try {
    const { floor, earlier } = JSON.parse(Buffer.from(data ?? []).toString('utf8'));
    const rows: unknown[] = [...earlier, { floor, since: String(mzxid) }];
    const floors = rows.map(readFloor);
    const rises = floors.every((each, index) => index === 0 || each.floor > floors[index - 1]!.floor);
    return rises ? floors : undefined;
  } catch {
    return undefined;
  }
}

function readFloor(row: unknown): TokenFloor {
  const { floor, since } = row as Record<string, unknown>;
  for (const text of [floor, since]) {
    if (typeof text !== 'string' || !NUMBER.test(text)) throw new TypeError('no number');
  }
  const read = { floor: BigInt(floor as string), since: BigInt(since as string) };
  if (read.floor > FLOOR_MAX) throw new RangeError('too large');
  return read;
}
