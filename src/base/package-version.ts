import { readFileSync } from 'node:fs';

/** The version of this package: of its package.json, which is two folders up in the sources and as built. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
