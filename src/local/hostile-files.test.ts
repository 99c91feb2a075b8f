import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isRunning, ownPlace, processStat } from '../base/process-identity.ts';
import { ensureLocalServer, findLocalServer, stopLocalServer } from './ensure-local-server.ts';
import { type LocalPlace, localPlace } from './local-place.ts';
import { readOwnFile } from './own-file.ts';
import { preparePlace } from './private-folder.ts';
import { readRecord, type ServerRecord, servingServer } from './server-record.ts';

let folder: string;
let place: LocalPlace;
let server: Server | undefined;
let child: ChildProcess | undefined;
let connectionCount = 0;

const uid = process.geteuid!();
const at = (path: string) => localPlace({ HOLDFAST_LOCAL_FOLDER: path });
const env = () => ({ HOLDFAST_LOCAL_FOLDER: place.folder });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-hostile-'));
  place = at(join(folder, 'state'));
  preparePlace(place);
  connectionCount = 0;
});
afterEach(async () => {
  vi.restoreAllMocks();
  server?.close();
  server = undefined;
  const ended = child && once(child, 'exit');
  child?.kill('SIGKILL');
  await ended;
  child = undefined;
  rmSync(folder, { recursive: true, force: true });
});

/** What a local server of another container writes: whether it runs is told by its socket alone. */
function record(changes: Partial<Record<keyof ServerRecord, unknown>> = {}): object {
  return {
    pid: 1,
    startedAt: '',
    hostName: 'z',
    machineId: '',
    bootId: 'x',
    pidNamespace: 'y',
    version: '99.9.9',
    folder: place.folder,
    socketPath: place.socketPath,
    since: new Date(0).toISOString(),
    ...changes,
  };
}

const write = (value: object) => writeFileSync(place.recordFile, JSON.stringify(value), { mode: 0o600 });

/** A process that listens on the place's socket, as a local server would. */
async function listen(): Promise<void> {
  server = createServer((socket) => {
    connectionCount++;
    socket.destroy();
  }).listen(place.socketPath);
  await once(server, 'listening');
  chmodSync(place.socketPath, 0o600);
}

/** Every way to a record refuses with that, and none connects to the socket. */
async function expectRefusal(message: string | RegExp): Promise<void> {
  const before = connectionCount;
  await expect(ensureLocalServer({ env: env(), timeoutMs: 0 })).rejects.toThrow(message);
  await expect(findLocalServer(env())).rejects.toThrow(message);
  await expect(servingServer(place)).rejects.toThrow(message);
  expect(connectionCount).toBe(before);
}

describe('a local server is believed', () => {
  test('where its folder, its record and its socket are of this user alone', async () => {
    write(record());
    await listen();
    expect(await servingServer(place)).toEqual(record());
    expect((await findLocalServer(env())).record).toEqual(record());
    expect(await ensureLocalServer({ env: env() })).toEqual(record());
  });

  test('and found through another name of its folder', async () => {
    write(record());
    symlinkSync(folder, join(folder, 'link'));
    const linked = at(join(folder, 'link', 'state'));
    expect(linked.socketPath).not.toBe(place.socketPath);
    expect(readRecord(linked)).toEqual(record());
    expect(readRecord(at(`${place.folder}/`))).toEqual(record());
  });
});

describe('a local server is refused', () => {
  test('in a folder of another user, whether or not it serves', async () => {
    const spy = vi.spyOn(process, 'geteuid').mockReturnValue(uid + 1);
    const refused = /: .*(is not a folder of user \d+|belongs to user \d+)/;
    await expectRefusal(refused);
    spy.mockRestore();
    write(record());
    await listen();
    vi.spyOn(process, 'geteuid').mockReturnValue(uid + 1);
    await expectRefusal(refused);
  });

  test.each([0o755, 0o770, 0o777])('in a folder of mode %o that the user named', async (mode) => {
    write(record());
    await listen();
    chmodSync(place.folder, mode);
    await expectRefusal(`${place.folder} is open to other users; chmod 700 it`);
  });

  test('in a folder of its own that others may write to: its files may be theirs', () => {
    const own = { ...place, chosen: false };
    chmodSync(own.folder, 0o720);
    expect(() => preparePlace(own)).toThrow(`${own.folder} is open to other users`);
    expect(() => readRecord(own)).toThrow(`${own.folder} is open to other users`);
  });

  test('below a folder in which others may put another one in its place', async () => {
    write(record());
    await listen();
    for (const mode of [0o777, 0o702]) {
      chmodSync(folder, mode);
      await expectRefusal(`${folder} can be written by every user`);
    }
    chmodSync(folder, 0o1777);
    expect(await servingServer(place)).toEqual(record());
    chmodSync(folder, 0o770);
    expect(await servingServer(place)).toEqual(record());
    if (uid === 0) chownSync(folder, 0, 1);
    else vi.spyOn(process, 'getegid').mockReturnValue(process.getegid!() + 1);
    await expectRefusal(/can be written by group \d+/);
  });

  test('below a symbolic link that leads through such a folder', async () => {
    mkdirSync(join(folder, 'open', 'inner', 'state'), { recursive: true, mode: 0o700 });
    chmodSync(join(folder, 'open'), 0o777);
    symlinkSync(join(folder, 'open', 'inner'), join(folder, 'link'));
    place = at(join(folder, 'link', 'state'));
    await expectRefusal(`${join(folder, 'open')} can be written by every user`);
  });

  test('whose record could be another user’s', async () => {
    await listen();
    write(record());
    chmodSync(place.recordFile, 0o620);
    await expectRefusal(`${place.recordFile} can be written by other users; remove it`);
    rmSync(place.recordFile);
    writeFileSync(join(folder, 'elsewhere'), JSON.stringify(record()), { mode: 0o600 });
    symlinkSync(join(folder, 'elsewhere'), place.recordFile);
    await expectRefusal(`${place.recordFile} cannot be read: ELOOP`);
    rmSync(place.recordFile);
    mkdirSync(place.recordFile);
    await expectRefusal(`${place.recordFile} is not a file of a local server; remove it`);
  });

  test('whose record belongs to another user', () => {
    write(record());
    expect(readOwnFile(place.recordFile)).toBe(JSON.stringify(record()));
    vi.spyOn(process, 'geteuid').mockReturnValue(uid + 1);
    expect(() => readOwnFile(place.recordFile)).toThrow(
      `${place.recordFile} belongs to user ${uid}, and this is user ${uid + 1}; remove it`,
    );
  });

  test('whose socket could be another user’s', async () => {
    await listen();
    write(record());
    chmodSync(place.socketPath, 0o666);
    await expectRefusal(`${place.socketPath} can be written by other users; remove it`);
  });
});

describe('a record', () => {
  test.each([
    ['names a socket elsewhere', { socketPath: '/tmp/elsewhere/socket' }],
    ['names a socket by a path that is not whole', { socketPath: 'socket' }],
    ['has no time', { since: undefined }],
    ['has a time that is none', { since: 'yesterday' }],
    ['has no version', { version: undefined }],
    ['has a version that moves the cursor', { version: '9.9.9\u001b[2J' }],
    ['names a process group', { pid: -1 }],
    ['names no process', { pid: '1' }],
    ['does not say when its process began', { startedAt: undefined }],
    ['does not say where its process runs', { bootId: null }],
  ])('that %s is none', async (_case, changes) => {
    write(record(changes));
    await listen();
    expect(readRecord(place)).toBeUndefined();
    expect((await findLocalServer(env())).record).toBeUndefined();
  });

  test.each(['', '{"pid":1,"socketPa', 'null', '[]', '1'])('that is %s is none', (text) => {
    writeFileSync(place.recordFile, text, { mode: 0o600 });
    expect(readRecord(place)).toBeUndefined();
  });
});

describe('stopping', () => {
  test('leaves a process alone that is no local server of that place, whatever the record says', async () => {
    child = spawn(process.execPath, ['-e', 'console.log("up"); setInterval(() => {}, 1e6)']);
    await once(child.stdout!, 'data');
    const pid = child.pid!;
    const here = ownPlace();
    const startedAt = `${processStat(pid)?.startedAtTicks} of ${here.bootId}`;
    write(record({ ...here, pid, startedAt }));
    const { record: named } = await findLocalServer(env());
    expect(named).toMatchObject({ pid });
    await expect(stopLocalServer(place, named!)).rejects.toThrow(
      `process ${pid}, which ${place.recordFile} names, is no local server of ${place.folder}: it is left alone`,
    );
    expect(isRunning({ pid, startedAt })).toBe(true);
    // Nor is it ended to make room for a newer version.
    write(record({ ...here, pid, startedAt, version: '0.0.1' }));
    await expect(ensureLocalServer({ env: env(), version: '99.0.0' })).rejects.toThrow('is left alone');
    expect(isRunning({ pid, startedAt })).toBe(true);
  });
});
