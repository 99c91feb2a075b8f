import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { IN_CONTAINER } from '../durability/durable-server.ts';
import { COMMAND } from './command-process.ts';

const run = promisify(execFile);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-places-'));
  await chmod(folder, 0o755);
  for (const name of ['home', 'other']) await mkdir(join(folder, name));
  await writeFile(join(folder, 'passwd'), `root:x:0:0::${folder}/home:/bin/sh\n`);
  await writeFile(join(folder, 'nobody'), '');
  // Some systems make up an entry for root.
  await writeFile(join(folder, 'nsswitch'), 'passwd: files\n');
  await writeFile(join(folder, 'holdfast'), `#!/bin/sh\nexec "${process.execPath}" "${COMMAND}" "$@"\n`);
  await chmod(join(folder, 'holdfast'), 0o755);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A machine of its own for a script: processes, host name, `/var/tmp`, and who its user is. All ends with the script. */
async function onOwnMachine(script: string, passwd: 'passwd' | 'nobody' = 'passwd'): Promise<string[]> {
  const [unshare, ...args] = IN_CONTAINER as [string, ...string[]];
  const lines = [
    `mount --bind ${folder}/${passwd} /etc/passwd`,
    `mount --bind ${folder}/nsswitch /etc/nsswitch.conf`,
    'mount -t tmpfs -o mode=1777 tmpfs /var/tmp',
    script,
  ];
  const { HOLDFAST_SERVERS: _, NODE_ENV: __, ...surroundings } = process.env;
  const env = { ...surroundings, D: folder, PATH: `${folder}:${process.env['PATH']}` };
  const { stdout } = await run(unshare, [...args, 'bash', '-ec', lines.join('\n')], { env, timeout: 60_000 });
  return stdout.trimEnd().split('\n');
}

/** Held by one run, a lock is tried by another, in other surroundings: what that one ends with, and says. */
const tried = (surroundings: string) =>
  `${surroundings} holdfast run --try a -- echo ran 2>&1 | sed 's/ taken: .*/ taken/'; echo \${PIPESTATUS[0]}`;
const held = (...lines: string[]) => `holdfast run a -- bash -c ${quoted(lines.join('\n'))}`;
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

describe("a user's own local server", () => {
  test('is one, whatever the host is called and the variables say, and leaves nothing where they point', async () => {
    const lines = await onOwnMachine(`
      export HOME=$D/home
      ${held(
        'hostname elsewhere',
        tried(''),
        tried('XDG_STATE_HOME=$D/other XDG_RUNTIME_DIR=$D/other TMPDIR=$D/other'),
        tried('HOME=$D/other'),
        tried('env -u HOME'),
      )}
      ls -A $D/other | wc -l
      ls $D/home/.local/state/holdfast`);
    expect(lines).toEqual([
      ...Array.from({ length: 4 }, () => ['holdfast: a is taken', '200']).flat(),
      '0',
      'local',
    ]);
  });

  test('works for a user without passwd entry and without HOME, as in many a container', async () => {
    const lines = await onOwnMachine(
      `
      export -n HOME
      ${held(tried('HOME=$D/other'), 'holdfast ls --json | grep -c holders')}
      holdfast server status --json | grep -o '"folder":"[^"]*"'
      holdfast doctor --servers local >/dev/null && echo sound
      holdfast server --listen unix:$D/zk --admin 127.0.0.1:0 >$D/said &
      until grep -q listening $D/said; do sleep 0.05; done
      kill $!; wait $! && echo stopped
      stat -c %a /var/tmp/holdfast-0 /var/tmp/holdfast-0/local`,
      'nobody',
    );
    expect(lines).toEqual([
      'holdfast: a is taken',
      '200',
      '1',
      '"folder":"/var/tmp/holdfast-0/local"',
      'sound',
      'stopped',
      '700',
      '700',
    ]);
  });

  test('is joined where it runs in another folder, and named where its folder cannot be seen', async () => {
    const lines = await onOwnMachine(
      `${held(
        // As when the user database cannot be asked for a moment.
        'umount /etc/passwd; mount --bind $D/nobody /etc/passwd',
        tried(''),
        'holdfast server status --json | grep -o \'"folder":"[^"]*"\'',
        // As in a sandbox that hides the home folder.
        `unshare --mount bash -ec ${quoted(`mount -t tmpfs tmpfs $D/home\n${tried('')}`)}`,
      )}`,
    );
    expect(lines.slice(0, 3)).toEqual([
      'holdfast: a is taken',
      '200',
      `"folder":"${folder}/home/.local/state/holdfast/local"`,
    ]);
    expect(lines.slice(3)).toEqual([
      expect.stringMatching(
        /^holdfast: local server: process \d+ is one of this user's already, in .*\/home\/.*, and cannot be reached from here; .*HOLDFAST_LOCAL_FOLDER/,
      ),
      '204',
    ]);
  });

  test('is shared by containers that share its folder, also where process numbers differ', async () => {
    const lines = await onOwnMachine(`
      ${held(
        `unshare --pid --fork --mount --mount-proc bash -ec ${quoted(`${tried('')}\nholdfast server status | head -1 | cut -c1-7`)}`,
      )}`);
    expect(lines).toEqual(['holdfast: a is taken', '200', 'running']);
  });

  test('is told from other processes, and stopped, also out of another user namespace', async () => {
    const lines = await onOwnMachine(`
      unshare --user --map-root-user holdfast run a -- echo ran
      unshare --user --map-root-user holdfast server stop
      holdfast server status || true`);
    expect(lines).toEqual(['ran', 'stopped', 'not running']);
  });

  test('goes on granting each lock once when its folder is removed under a holder, and when it is killed then', async () => {
    const lines = await onOwnMachine(`
      ${held(
        'cd $D/home/.local/state/holdfast',
        'rm -r local',
        tried(''),
        'kill -9 $(grep -o "\\"pid\\":[0-9]*" $D/home/.local/state/holdfast/local/server.json | cut -d: -f2)',
        tried(''),
      )}`);
    expect(lines).toEqual(['holdfast: a is taken', '200', 'holdfast: a is taken', '200']);
  });
});
