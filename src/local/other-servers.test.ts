import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureLocalServer } from './ensure-local-server.ts';
import { localPlace } from './local-place.ts';
import { marksInTitles, PLACE_VARIABLE, placeMark, processTitle, serversBeside } from './other-servers.ts';

let folder: string;
let children: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-beside-'));
  children = [];
});
afterEach(async () => {
  for (const child of children) {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

const placeOf = (name: string) => localPlace({ HOLDFAST_LOCAL_FOLDER: join(folder, name) });

/** A process that has the mark, or the name, of a local server. Resolves when it runs. */
async function pretend(env: Record<string, string>, title = ''): Promise<number> {
  const text = `process.title = ${JSON.stringify(title)} || process.title; console.log('up'); setInterval(() => {}, 1e6)`;
  // Room for the name, which takes the place of the arguments.
  const child = spawn(process.execPath, ['-e', text, 'x'.repeat(500)], { env });
  children.push(child);
  await once(child.stdout!, 'data');
  return child.pid!;
}

describe('the processes of local servers', () => {
  test('are found by their mark, whatever became of their files', async () => {
    const place = placeOf('a');
    const pid = await pretend({ [PLACE_VARIABLE]: placeMark(place) });
    expect(serversBeside(place)).toMatchObject([{ pid, folder: place.folder }]);
    expect(serversBeside(placeOf('b'))).toEqual([]);
  });

  test("of the user's own count wherever their files are; those in chosen folders do not", async () => {
    const own = { ...placeOf('own'), chosen: false };
    const pid = await pretend({ [PLACE_VARIABLE]: placeMark({ ...placeOf('elsewhere'), chosen: false }) });
    await pretend({ [PLACE_VARIABLE]: placeMark(placeOf('chosen')) });
    const found = serversBeside(own).filter((server) => server.folder.startsWith(folder));
    expect(found).toMatchObject([{ pid, folder: join(folder, 'elsewhere') }]);
  });

  test('are found by their names where there is no /proc', async () => {
    const place = placeOf('a');
    const pid = await pretend({}, processTitle(place));
    const own = marksInTitles(process.geteuid!()).filter(({ mark }) => mark.includes(folder));
    expect(own).toEqual([{ pid, mark: `chosen:${place.folder}` }]);
  });

  test('keep another from being started in the same folder, which would grant the same locks', async () => {
    const place = placeOf('a');
    const pid = await pretend({ [PLACE_VARIABLE]: placeMark(place) });
    const env = { HOLDFAST_LOCAL_FOLDER: place.folder };
    await expect(ensureLocalServer({ env, timeoutMs: 200 })).rejects.toThrow(
      `local server: process ${pid} is one of this user's already, in ${place.folder}, and cannot be reached`,
    );
    expect(readdirSync(place.folder)).toEqual([]);
  });
});
