import { utf8Bytes } from '../base/utf8-bytes.ts';

/** How long the program's name and its labels may be together, as JSON. */
export const OWNER_BYTES_MAX = 2_048;
/** The longest `reason` of a contender, and the longest `id` of a candidate. */
export const REASON_BYTES_MAX = 1_024;

/** Who contends, for people to read: kept in the contender's node. No secrets. */
export interface OwnerFacts {
  readonly host: string;
  readonly pid: number;
  /** The program's name. */
  readonly app: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** What is known of a contender; all of it may be missing, since Curator and others write what they like. */
export interface Owner extends Partial<OwnerFacts> {
  /** Why it wants the lock. */
  readonly reason?: string;
  /** When it joined the queue, by its own clock. */
  readonly since?: string;
  /** What the node holds, where that is not ours: Curator writes an address or what its user wants. */
  readonly text?: string;
}

/** A node that somebody else filled is read no further than this. */
const TEXT_CHARACTERS_MAX = 1_000;
const DATA_BYTES_MAX = 64 * 1024;

/**
 * Refuses what would make every contender's node large: each of thousands of them is kept by every server; and what
 * nobody who looks would be shown.
 *
 * @throws TypeError, RangeError.
 */
export function checkOwnerFacts(facts: Partial<Pick<OwnerFacts, 'app' | 'labels'>>): void {
  const { app, labels } = facts;
  if (app !== undefined && typeof app !== 'string') {
    throw new TypeError(`app: ${typeof app} given; a string is needed`);
  }
  if (labels !== undefined && (Array.isArray(labels) || !isLabels(labels))) {
    throw new TypeError('labels: an object whose values are strings is needed');
  }
  const byteCount = utf8Bytes(JSON.stringify(facts));
  if (byteCount > OWNER_BYTES_MAX) {
    throw new RangeError(
      `app, labels: ${byteCount} bytes given, as JSON; at most ${OWNER_BYTES_MAX} are allowed`,
    );
  }
}

/** Refuses a text that everyone who looks would have to read. @throws TypeError, RangeError. */
export function checkPeopleText(name: string, text: string): void {
  if (typeof text !== 'string') throw new TypeError(`${name}: ${typeof text} given; a string is needed`);
  const byteCount = utf8Bytes(text);
  if (byteCount > REASON_BYTES_MAX) {
    throw new RangeError(
      `${name}: ${byteCount} bytes in UTF-8 given; at most ${REASON_BYTES_MAX} are allowed`,
    );
  }
}

/** Writes the data of contenders' nodes; what stays the same for all of them is written once. */
export function ownerEncoder(
  facts: OwnerFacts,
): (joined: { readonly reason?: string | undefined; readonly wallMs: number }) => string {
  const { host, pid, app, labels } = facts;
  const same = JSON.stringify({ host, pid, app, ...(labels && { labels }) }).slice(0, -1);
  const timeText = timeWriter();
  return ({ reason, wallMs }) => {
    const why = reason === undefined ? '' : `,"reason":${JSON.stringify(reason)}`;
    return `${same},"since":"${timeText(wallMs)}"${why}}`;
  };
}

/** As `Date.toISOString`, but that all of one second share its text: a contender's node is written before it can wait. */
function timeWriter(): (wallMs: number) => string {
  let second = Number.NaN;
  let secondText = '';
  return (wallMs) => {
    const now = Math.floor(wallMs / 1_000);
    if (now !== second) {
      second = now;
      secondText = new Date(now * 1_000).toISOString().slice(0, -'000Z'.length);
    }
    return `${secondText}${String(wallMs - now * 1_000).padStart(3, '0')}Z`;
  };
}

const CONTROL_CHARACTERS = /\p{Cc}/gu;
const OWNER_LINE_CHARACTERS_MAX = 200;

/** An owner in one line, as `app@host:pid` or what its node holds; undefined if nothing is known. */
export function ownerText({ app, host, pid, text }: Owner): string | undefined {
  const place = host === undefined ? '' : pid === undefined ? host : `${host}:${pid}`;
  const known = app !== undefined && place !== '' ? `${app}@${place}` : app || place || text || undefined;
  return known?.slice(0, OWNER_LINE_CHARACTERS_MAX).replace(CONTROL_CHARACTERS, ' ');
}

/** Reads what any program may have written: whatever does not fit is shown as text, or not at all. */
export function decodeOwner(data: Uint8Array | null): Owner {
  if (!data || data.byteLength === 0 || data.byteLength > DATA_BYTES_MAX) return {};
  const text = Buffer.from(data).toString('utf8');
  const parsed = parseObject(text);
  if (!parsed) return { text: text.slice(0, TEXT_CHARACTERS_MAX) };
  const { host, pid, app, reason, since, labels } = parsed;
  return {
    ...(typeof host === 'string' && { host }),
    ...(typeof pid === 'number' && { pid }),
    ...(typeof app === 'string' && { app }),
    ...(typeof reason === 'string' && { reason }),
    ...(typeof since === 'string' && { since }),
    ...(isLabels(labels) && { labels }),
  };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isLabels(value: unknown): value is Record<string, string> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((each) => typeof each === 'string')
  );
}

/** The hold under which a nested run was started. A session id alone could be one of another ensemble. */
export interface ParentHold {
  readonly session: bigint;
  readonly token: bigint;
}

/** The label by which a contender of a nested `holdfast run` names the hold that its command was started under. */
const PARENT_LABEL = 'holdfast.parent';

export function parentLabel({ session, token }: ParentHold): Readonly<Record<string, string>> {
  return { [PARENT_LABEL]: `0x${BigInt.asUintN(64, session).toString(16)}/${token}` };
}

/** What a contender says of its parent: anyone may have written it, so it counts only where that hold is there. */
export function parentHold({ labels }: Owner): ParentHold | undefined {
  const match = /^(0x[0-9a-f]{1,16})\/(\d{1,19})$/.exec(labels?.[PARENT_LABEL] ?? '');
  return match ? { session: BigInt.asIntN(64, BigInt(match[1]!)), token: BigInt(match[2]!) } : undefined;
}
