import type { EntryRole, QueueEntry } from './lock-queue.ts';

/**
 * Names of entries, as Curator makes and reads them: `_c_<uuid>-<marker><ten digits>`. Curator sorts by what follows
 * the last marker and needs no more; the prefix lets an entry be recognised whose creation was not answered.
 */
const MARKERS: Readonly<Record<EntryRole, string>> = {
  exclusive: 'lock-',
  read: '__READ__',
  write: '__WRIT__',
  leader: 'latch-',
  lease: 'lease-',
};
const ROLES = Object.entries(MARKERS) as [EntryRole, string][];
const SEQUENCE_DIGITS = 10;
/** Ten digits, or a sign and what is left of them: `%010d` of a 32-bit number. */
const SEQUENCE = /^(?:\d{10}|-\d{9,10})$/;

/** Where numbers end: from then on everyone gets this one. */
export const SEQUENCE_LAST = 2 ** 31 - 1;

/** The name up to the number that the server adds. */
export function entryPrefix(id: string, role: EntryRole): string {
  return `_c_${id}-${MARKERS[role]}`;
}

/** The name of an entry at a place that is taken already: how a writer becomes a reader without losing its turn. */
export function entryNameAt(id: string, role: EntryRole, beside: QueueEntry): string {
  const marker = MARKERS[beside.role];
  return `${entryPrefix(id, role)}${beside.name.slice(beside.name.lastIndexOf(marker) + marker.length)}`;
}

/** Reads a name; undefined if it is none of ours, Curator's or Go's. Each join reads the whole queue's. */
export function parseEntry(name: string): QueueEntry | undefined {
  const digitsAt = name.length - SEQUENCE_DIGITS;
  for (const [role, marker] of ROLES) {
    if (!name.endsWith(marker, digitsAt)) continue;
    const sequence = decimalFrom(name, digitsAt);
    return sequence === undefined ? parseRareEntry(name) : { name, role, sequence, czxid: undefined };
  }
  return parseRareEntry(name);
}

/** As above, for numbers that have run over into negative ones, which may be a character longer. */
function parseRareEntry(name: string): QueueEntry | undefined {
  for (const [role, marker] of ROLES) {
    const at = name.lastIndexOf(marker);
    if (at < 0) continue;
    const digits = name.slice(at + marker.length);
    if (SEQUENCE.test(digits)) return { name, role, sequence: Number(digits), czxid: undefined };
  }
  return undefined;
}

/** The number that the rest of a name is, or undefined if it has anything but digits. */
function decimalFrom(name: string, start: number): number | undefined {
  let value = 0;
  for (let at = start; at < name.length; at++) {
    const digit = name.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value;
}

/** Whose node it may be, for the one who has to find out. */
export function describeForeign(name: string): string {
  if (/__r?lock__-?\d{9,10}$/.test(name)) return `${name} (kazoo, with its default names)`;
  if (/^x-.*-\d{10}$/.test(name)) return `${name} (ZooKeeper's own WriteLock)`;
  if (/^n_\d{10}$/.test(name)) return `${name} (ZooKeeper's own election)`;
  return name;
}

/** In the order of turns. The sign of the wrapped difference orders numbers that have run over. */
export function inOrder(a: QueueEntry, b: QueueEntry): number {
  const difference = (a.sequence - b.sequence) | 0;
  if (difference !== 0) return difference;
  const [first, second] = [a.czxid ?? 0n, b.czxid ?? 0n];
  if (first !== second) return first < second ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** Entries that their numbers cannot order. */
export function tied(entries: readonly QueueEntry[]): QueueEntry[] {
  if (new Set(entries.map(({ sequence }) => sequence)).size === entries.length) return [];
  const bySequence = new Map<number, QueueEntry[]>();
  for (const entry of entries) {
    const same = bySequence.get(entry.sequence);
    if (same) same.push(entry);
    else bySequence.set(entry.sequence, [entry]);
  }
  return [...bySequence.values()].filter((same) => same.length > 1).flat();
}

/** A random id in the form of a UUID, version 4, as Curator's tools expect it. */
export function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
