// One of the programs that share the locks: some sessions, some tasks in each. It may be stopped or killed at any time.
import { connect } from '../../src/holdfast.ts';
import { Neighbours } from '../../src/queue/neighbours.ts';
import { seededRandom } from '../../src/testing.ts';
import { nowMs, Recorder } from './recorder.ts';
import { ResourceClient } from './resource-client.ts';
import {
  LONG_WISHES,
  ownWishes,
  sharedWishes,
  type WorkerCommand,
  type WorkerOrders,
  type WorkerReport,
} from './scene.ts';
import { type Workplace, workOn, workOnControl } from './workload.ts';

const TASKS_PER_SESSION = 2;
/** Between two rounds with the lock that is mostly its own. */
const OWN_PAUSE_MS_MAX = 30;
const TICK_MS = 20;
/** Ticks that come further apart than this say that the process did not run. */
const STALL_MS = 100;
const PROGRESS_INTERVAL_MS = 200;

const orders = JSON.parse(process.argv[2]!) as WorkerOrders;
const { client, sessionTimeoutMs } = orders;
const recorder = new Recorder(orders.historyFile);
const control = new Recorder(orders.controlFile);
const report = (message: WorkerReport) => process.send!(message);
const fail = (error: unknown) => report({ kind: 'failed', error: String((error as Error)?.stack ?? error) });
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

let tickedAtMs = nowMs();
setInterval(() => {
  const atMs = nowMs();
  if (atMs - tickedAtMs > STALL_MS) {
    recorder.record({ kind: 'stalled', fromMs: tickedAtMs, atMs, client });
    control.record({ kind: 'stalled', fromMs: tickedAtMs, atMs, client });
  }
  tickedAtMs = atMs;
}, TICK_MS);

// They reach the same servers by different proxies: that it is one ensemble cannot be seen from their addresses.
const neighbours = new Neighbours();
const connecting = orders.sessions.map((servers) =>
  connect({ servers, sessionTimeoutMs, app: client, neighbours }),
);
const holdfasts = await Promise.all(connecting);
const resource = new ResourceClient(orders.resourcePort);
const drain = new AbortController();
let grants = 0;
let told = 0;
setInterval(() => {
  if (grants > told) report({ kind: 'progress', grants });
  told = grants;
}, PROGRESS_INTERVAL_MS);

const place: Workplace = {
  client,
  random: seededRandom(orders.seed),
  recorder,
  control,
  resource,
  drain: drain.signal,
  granted: () => {
    grants++;
  },
  holding: (lock, held) => report({ kind: 'holding', lock, held }),
};
/** A lock that hardly anybody else wants says nothing of those that all do. */
const apart: Workplace = { ...place, granted: () => {} };
const tasks = holdfasts.flatMap((holdfast, index) => [
  ...(index === 0 ? [workOn(holdfast, apart, ownWishes(orders.slot), OWN_PAUSE_MS_MAX)] : []),
  workOn(holdfast, apart, sharedWishes(orders.slot), OWN_PAUSE_MS_MAX),
  ...Array.from({ length: TASKS_PER_SESSION }, () => workOn(holdfast, place)),
  workOn(holdfast, place, LONG_WISHES),
  workOnControl(holdfast, place),
]);
for (const task of tasks) task.catch(fail);

process.on('message', (command: WorkerCommand) => {
  switch (command.kind) {
    case 'drain':
      drain.abort();
      Promise.all(tasks).then(() => report({ kind: 'drained' }), fail);
      return;
    case 'close':
      recorder.record({ kind: 'ended', atMs: nowMs(), client, how: 'closed' });
      control.record({ kind: 'ended', atMs: nowMs(), client, how: 'closed' });
      Promise.all(holdfasts.map((holdfast) => holdfast.close())).then(() => process.exit(0), fail);
      return;
    case 'block':
      for (const endMs = nowMs() + command.forMs; nowMs() < endMs; );
  }
});
report({ kind: 'ready' });
