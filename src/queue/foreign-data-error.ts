import { ZkError } from '../protocol/errors.ts';

/** A node that Holdfast keeps a number in holds something else. Nothing was written to it. */
export class ForeignDataError extends ZkError {
  static override readonly brand: string = 'ForeignDataError';
  readonly code = 'ZK_FOREIGN_DATA';
  readonly scope = 'request';
  readonly outcome = 'not-applied';
  readonly path: string;
  /** The beginning of what the node holds, as text. */
  readonly found: string;

  /** `needed`: what the node may hold. */
  constructor(path: string, data: Uint8Array | null, needed: string) {
    const found = excerptOf(data);
    super(`${path}: holds "${found}", where ${needed} is needed; nothing was written`);
    this.path = path;
    this.found = found;
  }
}

const EXCERPT_BYTES_MAX = 50;

/** The first bytes as text on one line, whatever they are. */
function excerptOf(data: Uint8Array | null): string {
  const bytes = Buffer.from(data ?? []);
  const text = bytes.toString('latin1', 0, EXCERPT_BYTES_MAX).replaceAll(/[^ !#-[\]-~]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
  return bytes.length > EXCERPT_BYTES_MAX ? `${text}…` : text;
}
