import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { probeSocketFile } from '../base/tcp-socket-file.ts';
import { localPlace } from '../local/local-place.ts';
import { preparePlace } from '../local/private-folder.ts';
import { readRecord } from '../local/server-record.ts';
import { serveLocally } from './local-server.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-keep-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe('a local server', () => {
  test('puts back its socket, its record and its folder when they are removed', async () => {
    const place = localPlace({ HOLDFAST_LOCAL_FOLDER: join(folder, 'state') });
    preparePlace(place);
    const stop = await serveLocally({ place, version: '1.0.0', idleMs: 600_000 });
    try {
      const isServing = async () => (await probeSocketFile(place.socketPath)) === 'listening';
      expect(await isServing()).toBe(true);
      rmSync(place.socketPath);
      rmSync(place.recordFile);
      await until(isServing);
      await until(() => readRecord(place)?.pid === process.pid);
      rmSync(place.folder, { recursive: true });
      await until(() => readRecord(place)?.pid === process.pid);
      expect(await isServing()).toBe(true);
      expect(statSync(place.socketPath).mode & 0o777).toBe(0o600);
      expect(existsSync(join(place.dataFolder, 'lock'))).toBe(true);
    } finally {
      await stop('by the test');
    }
    expect(existsSync(place.socketPath)).toBe(false);
    expect(existsSync(place.recordFile)).toBe(false);
    expect(existsSync(join(place.dataFolder, 'lock'))).toBe(false);
  });
});
