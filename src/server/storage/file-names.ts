/** What is kept in files of its own: transactions as they come, and the whole as of one of them. */
export type FileKind = 'log' | 'snapshot';

/** Names sort as their transactions do. The number that a log is named after is no transaction's. */
export function nameOf(kind: FileKind, zxid: bigint): string {
  return `${kind}.${zxid.toString(16).padStart(16, '0')}`;
}

/** Undefined for a file that is none of ours. */
export function kindOf(name: string): FileKind | undefined {
  const match = /^(log|snapshot)\.[0-9a-f]{16}$/.exec(name);
  return match?.[1] as FileKind | undefined;
}

export function zxidOf(name: string): bigint {
  return BigInt(`0x${name.slice(name.indexOf('.') + 1)}`);
}
