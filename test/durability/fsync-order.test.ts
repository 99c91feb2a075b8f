import { constants } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { SimulatedFolder } from '../../simulation/environment/simulated-folder.ts';
import { seededRandom } from '../../src/base/random.ts';
import {
  decodeLog,
  decodeLogHeader,
  LOG_HEADER_BYTES,
  type LogHeader,
} from '../../src/server/storage/log-format.ts';
import { open as openStore } from '../../src/server/storage/store.test-data.ts';
import { connect, ops } from '../../src/zookeeper.ts';
import { type SystemCall, SystemCallTrace, whyNotTraceable } from '../support/system-calls.ts';
import { DurableServer } from './durable-server.ts';

const CALLS = [
  'openat',
  'write',
  'writev',
  'pwrite64',
  'pwritev',
  'sendto',
  'sendmsg',
  'fdatasync',
  'fsync',
  'rename',
  'renameat',
  'renameat2',
  'unlink',
  'unlinkat',
];
const WRITERS = 4;
const WRITES = 60;

const whyNot = await whyNotTraceable();
if (whyNot !== undefined)
  console.warn(`the order of system calls is looked at INSIDE the process here, strace cannot: ${whyNot}`);

test(
  'what is answered was synced before, in a file whose name was synced before it was used',
  { timeout: 120_000 },
  whyNot === undefined ? byTrace : insideTheProcess,
);

async function byTrace(): Promise<void> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'holdfast-order-')));
  const server = await DurableServer.start(folder, { logBytesMax: 6_000 });
  try {
    const headers = new Map<string, LogHeader>();
    for (const name of await readdir(folder)) {
      if (!name.startsWith('log.')) continue;
      headers.set(join(folder, name), decodeLogHeader(name, await readFile(join(folder, name)))!);
    }
    const syncing = await openWithSync(server.process.pid!);
    const trace = await SystemCallTrace.of(server.process.pid!, CALLS);
    let calls: SystemCall[] = [];
    try {
      await traffic(server.connectString);
    } finally {
      calls = await trace.stop();
    }
    const { syncedAt, logCount } = readLogWrites(calls, { headers, syncing }, folder);
    expect(logCount, 'logs that were begun meanwhile').toBeGreaterThan(2);
    expect(expectRepliesAfterSyncs(calls, syncedAt)).toBeGreaterThanOrEqual(WRITERS * WRITES);
    expectSnapshotsInOrder(calls, folder);
  } finally {
    await server.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Several clients write at once, and others read and watch what they write. */
async function traffic(connectString: string): Promise<void> {
  await using reader = await connect(connectString);
  await using writer = await connect(connectString);
  await reader.create('/w', '');
  await Promise.all(
    Array.from({ length: WRITERS }, async (_, index) => {
      const path = `/w/${index}`;
      await writer.create(path, '');
      for (let count = 1; count < WRITES; count++) {
        const seen = reader.get(path, { watch: () => {} });
        if (count % 4 === 0)
          await writer.multi([ops.set(path, 'x'), ops.create(`${path}/${count}`, 'y'.repeat(200))]);
        else await writer.set(path, `${count}`);
        await seen;
      }
    }),
  );
}

/** The files that a process has open and whose every write is synced before it comes back. */
async function openWithSync(pid: number): Promise<Set<string>> {
  const paths = new Set<string>();
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    const [path, facts] = await Promise.all([
      readlink(`/proc/${pid}/fd/${fd}`),
      readFile(`/proc/${pid}/fdinfo/${fd}`, 'utf8'),
    ]).catch(() => ['', '']); // Closed meanwhile.
    const flags = Number.parseInt(/^flags:\s+([0-7]+)/m.exec(facts)?.[1] ?? '0', 8);
    if (flags & constants.O_DSYNC) paths.add(path);
  }
  return paths;
}

interface LogFiles {
  readonly headers: Map<string, LogHeader>;
  /** Those whose every write is synced before it comes back. */
  readonly syncing: Set<string>;
}

/**
 * When each transaction was on disk: when the write of its bytes ended, in a file that syncs writes, or else when the
 * first sync ended that began after that.
 */
function readLogWrites(calls: readonly SystemCall[], { headers, syncing }: LogFiles, folder: string) {
  const syncedAt = new Map<bigint, number>();
  let logCount = 0;
  for (const call of calls) {
    if (!isWrite(call) || dirname(call.target) !== folder || !basename(call.target).startsWith('log.'))
      continue;
    const bytes = Buffer.concat(call.strings);
    const header = headers.get(call.target);
    if (!header) {
      logCount++;
      headers.set(call.target, decodeLogHeader(call.target, bytes)!);
      const made = expectNameSynced(calls, call, folder);
      if (/\bO_DSYNC\b/.test(made.args)) syncing.add(call.target);
      continue;
    }
    const content = Buffer.concat([Buffer.alloc(LOG_HEADER_BYTES), bytes]);
    const sync = syncing.has(call.target)
      ? { ...call, done: call.result === String(bytes.byteLength) }
      : syncAfter(calls, call);
    decodeLog(call.target, content, header, ({ zxid }) => {
      expect(sync?.done, `transaction ${zxid} is synced`).toBe(true);
      syncedAt.set(zxid, sync!.endedAt!);
    });
  }
  return { syncedAt, logCount };
}

function syncAfter(calls: readonly SystemCall[], write: SystemCall) {
  const sync = calls.find(
    ({ name, target, beganAt }) =>
      name === 'fdatasync' && target === write.target && beganAt > write.endedAt!,
  );
  return sync && { ...sync, done: sync.result === '0' };
}

/** Between the making of a file, which is returned, and the first write to it, its name was synced. */
function expectNameSynced(calls: readonly SystemCall[], firstWrite: SystemCall, folder: string): SystemCall {
  const made = calls.find(
    ({ name, strings }) => name === 'openat' && strings.some((path) => path.toString() === firstWrite.target),
  )!;
  const synced = calls.some(
    ({ name, target, beganAt, endedAt, result }) =>
      name === 'fsync' &&
      target === folder &&
      beganAt > made.endedAt! &&
      endedAt! < firstWrite.beganAt &&
      result === '0',
  );
  expect(synced, `the name of ${firstWrite.target}`).toBe(true);
  return made;
}

/** No frame shows a transaction, by its number, that was not on disk when it was sent. */
function expectRepliesAfterSyncs(
  calls: readonly SystemCall[],
  syncedAt: ReadonlyMap<bigint, number>,
): number {
  const transactions = [...syncedAt].sort(([a], [b]) => Number(a - b));
  let replies = 0;
  for (const call of calls) {
    if (!isWrite(call) || !call.target.startsWith('socket:')) continue;
    for (const { xid, zxid } of framesOf(Buffer.concat(call.strings))) {
      const early = transactions.find(([number, at]) => number <= zxid && at >= call.beganAt);
      expect(early, `frame with xid ${xid} shows ${zxid} before this was on disk`).toBeUndefined();
      if (xid > 0 && syncedAt.has(zxid)) replies++;
    }
  }
  return replies;
}

/** A snapshot is synced before it gets its name, and that before anything it replaces goes. */
function expectSnapshotsInOrder(calls: readonly SystemCall[], folder: string): void {
  const temporary = join(folder, 'snapshot.tmp');
  const renames = calls.filter(
    ({ name, strings }) => name.startsWith('rename') && strings[0]?.toString() === temporary,
  );
  expect(renames.length, 'snapshots').toBeGreaterThan(1);
  for (const renamed of renames) {
    const before = calls.filter(({ target, beganAt }) => target === temporary && beganAt < renamed.beganAt);
    expect(before.at(-1), 'the last thing done to it').toMatchObject({ name: 'fdatasync', result: '0' });
    expect(before.at(-1)!.endedAt).toBeLessThan(renamed.beganAt);
    const removal = calls.find(
      ({ name, strings, beganAt }) =>
        name.startsWith('unlink') &&
        beganAt > renamed.beganAt &&
        /log\.|snapshot\.[0-9a-f]/.test(String(strings[0])),
    );
    const synced = calls.find(
      ({ name, target, beganAt }) => name === 'fsync' && target === folder && beganAt > renamed.endedAt!,
    );
    if (removal) expect(synced!.endedAt).toBeLessThan(removal.beganAt);
  }
}

function isWrite({ name, target }: SystemCall): boolean {
  return target !== '' && /^(p?writev?(64)?|sendto|sendmsg)$/.test(name);
}

function* framesOf(bytes: Buffer): Generator<{ xid: number; zxid: bigint }> {
  for (let at = 0; at + 20 <= bytes.byteLength; at += 4 + bytes.readInt32BE(at)) {
    yield { xid: bytes.readInt32BE(at + 4), zxid: bytes.readBigInt64BE(at + 8) };
  }
}

/** Where no process can be traced: the calls that the store makes, and what it says in between. */
async function insideTheProcess(): Promise<void> {
  const folder = new SimulatedFolder();
  const { store, owner } = await openStore(folder, 2_000);
  const random = seededRandom(1);
  const durable = owner.durable.bind(owner);
  let promises = 0;
  owner.durable = (zxid) => {
    const file = [...folder.files]
      .filter(([name]) => name.startsWith('log.'))
      .sort()
      .at(-1)![1];
    expect(file.durable.equals(file.content)).toBe(true);
    promises++;
    durable(zxid);
  };
  for (let count = 0; count < WRITERS * WRITES; count++) {
    store.append(owner.perform(owner.next(random)));
    if (count % 3 === 0) await store.settled();
  }
  await store.settled();
  expect(promises).toBeGreaterThan(WRITES);
}
