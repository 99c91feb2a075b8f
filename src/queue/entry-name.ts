import type { EntryRole, QueueEntry } from './lock-queue.ts';

/**
 * Names of entries, as Curator makes and reads them: `_c_<uuid>-<marker><ten digits>`. Curator sorts by what follows
 * the last marker and needs no more; the prefix lets an entry be recognised whose creation was not answered.
 */
const MARKERS: Readonly<Record<EntryRole, string>> = {
  exclusive: 'lock-',
  // Before the two that they end in: for Curator they are a reader and a writer like all others.
  upgradable: '__UPGR____READ__',
  upgraded: '__UPGR____WRIT__',
  read: '__READ__',
  write: '__WRIT__',
  leader: 'latch-',
  lease: 'lease-',
};
const ROLES = Object.entries(MARKERS) as [EntryRole, string][];
const SEQUENCE_DIGITS = 10;
/**
 * Ten digits, or a sign and what is left of them: `%010d` of a 32-bit number. A `+` behind them is what makes a place
 * between two numbers, for Curator too, which compares them as text.
 */
const SEQUENCE = /^(\d{10}|-\d{9,10})(\+?)$/;

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

/** The name of an entry right before one that has a number; undefined where numbers cannot say so. */
export function entryNameBefore(id: string, role: EntryRole, other: QueueEntry): string | undefined {
  if (other.sequence < 1 || other.sequence === SEQUENCE_LAST || other.between) return undefined;
  return `${entryPrefix(id, role)}${String(other.sequence - 1).padStart(10, '0')}+`;
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

/** As above, for places between numbers, and for numbers that have run over into negative ones: both may be longer. */
function parseRareEntry(name: string): QueueEntry | undefined {
  for (const [role, marker] of ROLES) {
    const at = name.lastIndexOf(marker);
    if (at < 0) continue;
    const digits = name.slice(at + marker.length);
    const [, number, plus] = SEQUENCE.exec(digits) ?? [];
    if (number === undefined) continue;
    return { name, role, sequence: Number(number), czxid: undefined, ...(plus && { between: true }) };
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
  if (a.between !== b.between) return a.between ? 1 : -1;
  const [first, second] = [a.czxid ?? 0n, b.czxid ?? 0n];
  if (first !== second) return first < second ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** Entries that their numbers cannot order, among entries that are in order otherwise. */
export function tied(entries: readonly QueueEntry[]): QueueEntry[] {
  return entries.filter(
    (entry, index) => isTied(entry, entries[index - 1]) || isTied(entry, entries[index + 1]),
  );
}

function isTied(entry: QueueEntry, other: QueueEntry | undefined): boolean {
  return other !== undefined && entry.sequence === other.sequence && entry.between === other.between;
}

/** A random id in the form of a UUID, version 4, as Curator's tools expect it. */
export function uuidOf(bytes: Uint8Array): string {
  // In place, and as one string: of concatenated parts each would be kept for as long as the name is.
  let at = 0;
  for (let index = 0; index < 16; index++) {
    if (index === 4 || index === 6 || index === 8 || index === 10) UUID[at++] = 0x2d;
    const byte = bytes[index]!;
    const marked = index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte;
    UUID[at++] = HEX.charCodeAt(marked >> 4);
    UUID[at++] = HEX.charCodeAt(marked & 15);
  }
  return UUID.toString('latin1');
}

const UUID = Buffer.alloc(36);
const HEX = '0123456789abcdef';
