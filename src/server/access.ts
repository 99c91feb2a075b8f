import { sha1 } from '../base/hash.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import type { Acl } from '../protocol/records.ts';

const SCHEMES_WITH_IDS: ReadonlySet<string> = new Set(['world', 'digest', 'ip']);

/** Who a connection is: one of possibly several. */
export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

/** A request that is refused, with the code that says why. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly serverCode: number;

  constructor(condition: keyof typeof errorCodes) {
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
  return identities.some(
    (identity) =>
      identity.scheme === 'super' ||
      acl.some(
        ({ perms, id }) =>
          (perms & wanted) !== 0 && identity.scheme === id.scheme && matches(identity, id.id ?? ''),
      ),
  );
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
  const [host, bitsText, rest] = text.split('/');
  const address = parseIpv4(host ?? '');
  const bits = bitsText === undefined ? 32 : /^\d+$/.test(bitsText) ? Number(bitsText) : -1;
  if (address === undefined || rest !== undefined || bits < 0 || bits > 32) return undefined;
  return { address, bits };
}

function parseIpv4(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) <= 255))
    return undefined;
  return parts.reduce((address, part) => ((address << 8) | Number(part)) >>> 0, 0);
}
