import { linkSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockFile } from './lock-file.ts';
import { ownIdentity, ownPlace } from './process-identity.ts';
import { listenOnFile } from './tcp-socket-file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-lock-file-'));
  path = join(folder, 'lock');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const SOCKET = 'lock.0123456789abcdef';
const namedIn = (holder: object) => writeFileSync(path, JSON.stringify({ ...holder, socket: SOCKET }));

describe('a lock file', () => {
  test('is held as long as its socket is answered, whatever runs under its process number', async () => {
    namedIn({ ...ownIdentity(), pid: 2 ** 22 + 1, ...ownPlace(), pidNamespace: 'pid:[1]' });
    const socket = await listenOnFile(join(folder, SOCKET));
    expect(await lockFile(path)).toMatchObject({ locked: false, runs: true });
    await socket.close();
  });

  test('is taken over when its socket is dead, whatever runs under its process number', async () => {
    const killed = await listenOnFile(`${join(folder, SOCKET)}.later`);
    // Closing removes the file; a hard link to it stays, as the file of a killed process does.
    linkSync(`${join(folder, SOCKET)}.later`, join(folder, SOCKET));
    await killed.close();
    namedIn({ ...ownIdentity(), ...ownPlace() });
    expect(await lockFile(path)).toMatchObject({ locked: true });
  });

  test('is released by its holder only', async () => {
    const first = await lockFile(path);
    rmSync(path);
    const second = await lockFile(path);
    if (!first.locked || !second.locked) throw new Error('not taken');
    await first.release();
    expect(await lockFile(path)).toMatchObject({ locked: false, runs: true });
    await second.release();
    expect(await lockFile(path)).toMatchObject({ locked: true });
  });
});
