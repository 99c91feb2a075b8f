import { sha1 } from '../base/hash.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import type { Acl } from '../protocol/records.ts';

const SCHEMES_WITH_IDS: ReadonlySet<string> = new Set(['world', 'digest', 'ip']);

/** Who a connection is: one of possibly several. */
export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

export type RefusalCondition = keyof typeof errorCodes;

/** A request that is refused, with the code that says why. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly serverCode: number;

  constructor(condition: RefusalCondition) {
    // Clients are refused all the time, and nobody reads where in here: the stack would cost more than the request.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(condition);
    Error.stackTraceLimit = stackTraceLimit;
    this.serverCode = errorCodes[condition];
  }
}

/** The identity that `user:password` gives in scheme digest. Any bytes are an identity: nothing is checked here. */
export function digestIdentity(credentials: string): Identity {
  const user = credentials.split(':', 1)[0] ?? '';
  return { scheme: 'digest', id: `${user}:${sha1(credentials).toString('base64')}` };
}

/** Whether one of the identities has one of the wanted permissions. */
export function isAllowed(acl: readonly Acl[], wanted: number, identities: readonly Identity[]): boolean {
  if (acl.length === 0) return true;
  // What nearly every node has, before anyone is looked at.
  for (const entry of acl) if ((entry.perms & wanted) !== 0 && isWorld(entry)) return true;
  if (acl.length > SHORT_LENGTH || identities.length > SHORT_LENGTH)
    return (permissionsOf(acl, identities) & wanted) !== 0;
  return identities.some(
    (identity) =>
      identity.scheme === 'super' ||
      acl.some(
        ({ perms, id }) =>
          (perms & wanted) !== 0 && identity.scheme === id.scheme && matches(identity, id.id ?? ''),
      ),
  );
}

/** Lists up to this length are gone through each time they are asked. */
const SHORT_LENGTH = 8;
const ALL_PERMISSIONS = -1;

/** Identities by scheme, of as many as there were: a connection gets more of them, and loses none. */
interface KnownIdentities {
  readonly count: number;
  readonly byScheme: ReadonlyMap<string, ReadonlySet<string>>;
}
const known = new WeakMap<readonly Identity[], KnownIdentities>();

interface Granted {
  readonly identityCount: number;
  readonly permissions: number;
}
const granted = new WeakMap<readonly Acl[], WeakMap<readonly Identity[], Granted>>();

/**
 * What a long access list allows long identities: remembered, since a thousand operations of one multi may ask. Both
 * lists are never changed in place but for identities that are added.
 */
function permissionsOf(acl: readonly Acl[], identities: readonly Identity[]): number {
  const ofAcl = granted.get(acl) ?? new WeakMap<readonly Identity[], Granted>();
  granted.set(acl, ofAcl);
  const before = ofAcl.get(identities);
  if (before?.identityCount === identities.length) return before.permissions;
  const permissions = findPermissions(acl, knownOf(identities));
  ofAcl.set(identities, { identityCount: identities.length, permissions });
  return permissions;
}

/** Looks up what a long access list allows, if it has not been yet: false if that took no time. */
export function prepareAccess(acl: readonly Acl[], identities: readonly Identity[]): boolean {
  if (acl.length <= SHORT_LENGTH && identities.length <= SHORT_LENGTH) return false;
  permissionsOf(acl, identities);
  return true;
}

function knownOf(identities: readonly Identity[]): KnownIdentities {
  const before = known.get(identities);
  if (before?.count === identities.length) return before;
  const byScheme = new Map<string, Set<string>>();
  for (const { scheme, id } of identities) byScheme.set(scheme, (byScheme.get(scheme) ?? new Set()).add(id));
  const now = { count: identities.length, byScheme };
  known.set(identities, now);
  return now;
}

function findPermissions(acl: readonly Acl[], { byScheme }: KnownIdentities): number {
  if (byScheme.has('super')) return ALL_PERMISSIONS;
  let permissions = 0;
  for (const entry of acl) {
    if ((entry.perms & ~permissions) === 0) continue;
    const { scheme, id } = entry.id;
    const ids = byScheme.get(scheme);
    if (isWorld(entry) || (ids && isAmong(ids, scheme, id ?? ''))) permissions |= entry.perms;
  }
  return permissions;
}

function isAmong(ids: ReadonlySet<string>, scheme: string, wanted: string): boolean {
  if (ids.has(wanted)) return true;
  if (scheme !== 'ip') return false;
  for (const id of ids) if (matches({ scheme, id }, wanted)) return true;
  return false;
}

/** An access list as it is stored: duplicates gone, then `auth` replaced by whoever is asking. */
export function normalizeAcl(acl: readonly Acl[] | null, identities: readonly Identity[]): readonly Acl[] {
  if (acl === null || acl.length === 0) throw new Refusal('invalid-acl');
  if (acl.length === 1 && isWorld(acl[0]!)) return acl; // As nearly all are.
  return withoutDuplicates(acl).flatMap((entry): readonly Acl[] => {
    const { scheme, id } = entry.id;
    if (scheme === 'auth') {
      const authenticated = identities.filter((identity) => isAuthenticated(identity.scheme));
      if (authenticated.length === 0) throw new Refusal('invalid-acl');
      return authenticated.map((identity) => ({ perms: entry.perms, id: identity }));
    }
    // ZooKeeper stumbles over the null before it can call it invalid.
    if (id === null && SCHEMES_WITH_IDS.has(scheme)) throw new Refusal('marshalling-error');
    if (!isValidId(scheme, id ?? '')) throw new Refusal('invalid-acl');
    return [entry];
  });
}

function isWorld({ id }: Acl): boolean {
  return id.scheme === 'world' && id.id === 'anyone';
}

function withoutDuplicates(acl: readonly Acl[]): Acl[] {
  const seen = new Set<string>();
  return acl.filter(({ perms, id }) => {
    const key = JSON.stringify([perms, id.scheme, id.id]);
    return !seen.has(key) && seen.add(key);
  });
}

/** What a caller without ADMIN sees of an access list: who, but not the hash of their password. */
export function maskDigests(acl: readonly Acl[]): readonly Acl[] {
  return acl.map((entry) => {
    if (entry.id.scheme !== 'digest') return entry;
    const user = (entry.id.id ?? '').split(':', 1)[0] ?? '';
    return { perms: entry.perms, id: { scheme: 'digest', id: `${user}:x` } };
  });
}

/** The name of an identity, as `whoAmI` tells it. */
export function userNameOf({ scheme, id }: Identity): string {
  return scheme === 'digest' ? (id.split(':', 1)[0] ?? '') : id;
}

function isAuthenticated(scheme: string): boolean {
  return scheme === 'digest' || scheme === 'sasl' || scheme === 'x509';
}

function isValidId(scheme: string, id: string): boolean {
  switch (scheme) {
    case 'world':
      return id === 'anyone';
    case 'digest':
      // Two parts as Java splits them, which lets the first be empty and forgets colons at the end.
      return /^[^:]*:[^:]+:*$/.test(id);
    case 'ip':
      return parseIpRange(id) !== undefined;
    case 'x509':
      return /^([A-Za-z]+|\d+(\.\d+)+)=/.test(id);
    default:
      return false;
  }
}

function matches({ scheme, id }: Identity, wanted: string): boolean {
  if (scheme !== 'ip') return id === wanted;
  const range = parseIpRange(wanted);
  const address = parseIpv4(id);
  if (!range || address === undefined) return id === wanted;
  if (range.bits === 0) return true;
  return (address ^ range.address) >>> (32 - range.bits) === 0;
}

function parseIpRange(text: string): { address: number; bits: number } | undefined {
  if (!text.includes('/')) {
    const address = parseIpv4(text);
    return address === undefined ? undefined : { address, bits: 32 };
  }
  const [host, bitsText, rest] = text.split('/');
  const address = parseIpv4(host ?? '');
  const bits = bitsText === undefined ? 32 : /^\d+$/.test(bitsText) ? Number(bitsText) : -1;
  if (address === undefined || rest !== undefined || bits < 0 || bits > 32) return undefined;
  return { address, bits };
}

/** By hand: an access list may have hundreds of them, and each is read at each question. */
function parseIpv4(text: string): number | undefined {
  let address = 0;
  let part = 0;
  let digitCount = 0;
  let partCount = 1;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit === DOT) {
      if (digitCount === 0 || ++partCount > 4) return undefined;
      address = ((address << 8) | part) >>> 0;
      part = 0;
      digitCount = 0;
    } else {
      if (unit < ZERO || unit > NINE || ++digitCount > 3) return undefined;
      part = 10 * part + unit - ZERO;
      if (part > 255) return undefined;
    }
  }
  return partCount === 4 && digitCount > 0 ? ((address << 8) | part) >>> 0 : undefined;
}
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
