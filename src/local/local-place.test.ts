import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { localPlace, type Surroundings } from './local-place.ts';
import { preparePlace } from './private-folder.ts';

const MACHINE_ID = '0123456789abcdef0123456789abcdef';
const uid = process.geteuid!();
let folder: string;
let surroundings: Surroundings;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-place-'));
  surroundings = {
    uid,
    homeFolder: folder,
    machine: { machineId: MACHINE_ID, hostName: 'laptop' },
    isShared: () => false,
  };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe("the local server's place", () => {
  test('is the same whatever the variables say, and whatever the machine is called', () => {
    const place = localPlace({}, surroundings);
    expect(place.folder).toBe(join(folder, '.local/state/holdfast/local'));
    const elsewhere = { HOME: '/a', XDG_STATE_HOME: '/b', XDG_RUNTIME_DIR: '/c', TMPDIR: '/d' };
    expect(localPlace(elsewhere, surroundings)).toEqual(place);
    const renamed = { ...surroundings, machine: { machineId: MACHINE_ID, hostName: 'elsewhere' } };
    expect(localPlace({}, renamed)).toEqual(place);
  });

  test('is of one machine where several have the home folder, and lasts when that gets another name', () => {
    const on = (machineId: string, hostName: string) =>
      localPlace({}, { ...surroundings, isShared: () => true, machine: { machineId, hostName } }).folder;
    const other = 'f'.repeat(32);
    expect(on(MACHINE_ID, 'a')).toBe(on(MACHINE_ID, 'b'));
    expect(on(MACHINE_ID, 'a')).not.toBe(on(other, 'a'));
    expect(on(MACHINE_ID, 'a')).not.toContain(MACHINE_ID);
    // No identity: as in most containers, and before the first start of an image.
    expect(on('', 'a')).not.toBe(on('', 'b'));
    expect(on('uninitialized', 'a')).toBe(on('', 'a'));
  });

  test.each([
    ['has no passwd entry', undefined],
    ['has a home folder that is not there', '/nonexistent'],
    ['has a home folder that is a file', '/etc/passwd'],
    ['has a home folder that is not absolute', ''],
  ])('is under /var/tmp for a user who %s', (_case, homeFolder) => {
    const { folder: place, privateFolders } = localPlace({ HOME: folder }, { ...surroundings, homeFolder });
    expect(place).toBe(`/var/tmp/holdfast-${uid}/local`);
    // In a folder that everyone writes to, the outer one must be this user's alone, too.
    expect(privateFolders).toEqual([dirname(place), place]);
  });

  test('can be chosen, and is then apart', () => {
    const chosen = localPlace({ HOLDFAST_LOCAL_FOLDER: join(folder, 'mine') }, surroundings);
    expect(chosen).toMatchObject({ folder: join(folder, 'mine'), chosen: true });
    expect(() => localPlace({ HOLDFAST_LOCAL_FOLDER: 'mine' }, surroundings)).toThrow(
      'HOLDFAST_LOCAL_FOLDER: "mine" given; an absolute path is needed',
    );
  });

  test('has a socket in a folder of its own where the path is too long for one, and never in another', () => {
    const long = { ...surroundings, homeFolder: join(folder, 'long'.repeat(25)) };
    mkdirSync(long.homeFolder);
    const { socketPath } = localPlace({ XDG_RUNTIME_DIR: folder, TMPDIR: folder }, long);
    expect(dirname(socketPath)).toBe(`/tmp/holdfast-${uid}`);
    expect(Buffer.byteLength(socketPath)).toBeLessThan(104);
  });
});

describe('the folders of a place', () => {
  test('are made for their user alone', () => {
    const place = localPlace({}, surroundings);
    preparePlace(place);
    expect(modeOf(place.folder)).toBe(0o700);
    chmodSync(place.folder, 0o755);
    preparePlace(place);
    expect(modeOf(place.folder)).toBe(0o700);
  });

  test('that the user has named are not changed: one that others may enter is refused', () => {
    const named = join(folder, 'shared');
    mkdirSync(named);
    chmodSync(named, 0o1777);
    const place = localPlace({ HOLDFAST_LOCAL_FOLDER: named }, surroundings);
    expect(() => preparePlace(place)).toThrow(`local server: ${named} is open to other users; chmod 700 it`);
    expect(modeOf(named)).toBe(0o777);
    expect(readdirSync(named)).toEqual([]);
  });
});
