import { createHash, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The 16 bytes of an MD5 digest: for SASL DIGEST-MD5 only, whose protocol fixes the algorithm. */
export function md5(...parts: (string | Uint8Array)[]): Buffer {
  const hash = createHash('md5');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** The 20 bytes of a SHA-1 digest: for ZooKeeper's `digest` ACL ids, whose format fixes the algorithm. */
export function sha1(text: string): Buffer {
  return createHash('sha1').update(text, 'utf8').digest();
}

/** A 32-bit checksum of bytes, begun with `seed`: finds damage, not malice. */
export function checksum(bytes: Uint8Array, seed = 0): number {
  return crc32(bytes, seed);
}

/** Whether two secrets are the same, in a time that does not tell how much of a guess was right. */
export function isSameSecret(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
