import { setTimeout as delay } from 'node:timers/promises';
import { ConnectionLossError, isServerError, type ZooKeeper } from '../../src/zookeeper.ts';
import { until } from '../support/until.ts';
import type { ZooKeeperEnsemble } from '../support/zookeeper-ensemble.ts';
import type { ZooKeeperProcess } from '../support/zookeeper-process.ts';
import type { FaultKind, PlannedFault } from './plan.ts';
import { CONTROL_LOCK, LOCKS, STRUCK_LOCK } from './scene.ts';
import { healProxies, type Worker } from './worker.ts';

/** What faults can strike. */
export interface Victims {
  readonly ensemble: ZooKeeperEnsemble;
  readonly workers: readonly Worker[];
  /** A client of the servers themselves, that no proxy stands before. */
  readonly admin: ZooKeeper;
}

/** A fault that has been begun. */
export interface BegunFault {
  readonly target: string;
  /** Makes it well again; nothing to do if it was over in a moment. */
  end(): Promise<void> | void;
}

/** Longer than any hold: who does not come to hold by then is not worth waiting for. */
const HOLDER_TIMEOUT_MS = 20_000;
/** What a worker had said before it was stopped has been heard by then. */
const MESSAGES_MS = 100;
const BETWEEN_CUTS_MS = 40;
/** A server with a long log to read, on a busy machine. */
const RESTART_TIMEOUT_MS = 120_000;

type Begin = (victims: Victims, fault: PlannedFault) => Promise<BegunFault> | BegunFault;

/** Makes something go wrong. */
export async function beginFault(victims: Victims, fault: PlannedFault): Promise<BegunFault> {
  return await BEGIN[fault.kind](victims, fault);
}

const BEGIN: Readonly<Record<FaultKind, Begin>> = {
  'kill-worker': async ({ workers }, { dice }) => {
    const worker = oneOf(workers, dice);
    const target = worker.client;
    await worker.kill();
    return { target, end: () => startAgain(worker) };
  },
  'pause-worker': ({ workers }, { dice }) => paused([oneOf(workers, dice)]),
  'block-worker': ({ workers }, { dice, holdMs }) => {
    const worker = oneOf(workers, dice);
    if (worker.running) worker.block(holdMs);
    return { target: worker.client, end: () => {} };
  },
  // Those in the middle of something: what they do when they wake up comes too late.
  'pause-holders': async ({ workers }) => {
    const stopped = new Set<Worker>();
    for (const lock of [STRUCK_LOCK, CONTROL_LOCK]) {
      await until(
        `somebody to be stopped while it holds ${lock}`,
        async () => {
          const holder = workers.find((worker) => worker.holds(lock));
          if (!holder || stopped.has(holder)) return holder !== undefined;
          holder.pause();
          await delay(MESSAGES_MS);
          if (holder.holds(lock)) stopped.add(holder);
          else holder.resume(); // It had let go by then.
          return stopped.has(holder);
        },
        HOLDER_TIMEOUT_MS,
      );
    }
    return paused([...stopped]);
  },
  'kill-leader': async ({ ensemble }) => killed(await ensemble.leader()),
  'kill-follower': async ({ ensemble }, { dice }) => killed(await followerOf(ensemble, dice)),
  'pause-leader': async ({ ensemble }) => pausedServer(await ensemble.leader()),
  'pause-follower': async ({ ensemble }, { dice }) => pausedServer(await followerOf(ensemble, dice)),
  'isolate-follower': async ({ ensemble }, { dice }) => isolated(ensemble, await followerOf(ensemble, dice)),
  'isolate-leader': async ({ ensemble }) => isolated(ensemble, await ensemble.leader()),
  'rolling-restart': async ({ ensemble }) => {
    for (const server of ensemble.servers) {
      await server.restart(RESTART_TIMEOUT_MS);
      await ensemble.leader();
    }
    return { target: 'all servers', end: () => {} };
  },
  'reset-connections': ({ workers }, { dice }) => {
    const proxies = workers.flatMap((worker) => worker.proxies.flat());
    const struck = proxies.filter((_, index) => (dice >>> (index % 30)) & 1);
    for (const proxy of struck) proxy.resetAll();
    return { target: `${struck.length} links`, end: () => {} };
  },
  // Between any two bytes of an answer: its request has been done, and nobody knows.
  'cut-replies': ({ workers }, { dice }) => {
    const proxies = oneOf(workers, dice).proxies.flat();
    const stop = new AbortController();
    const cutting = (async () => {
      for (let count = 0; !stop.signal.aborted; count++) {
        for (const proxy of proxies)
          proxy.cutAfter({ direction: 'to-client', bytes: (dice + 37 * count) % 300 });
        await delay(BETWEEN_CUTS_MS);
      }
    })();
    const target = oneOf(workers, dice).client;
    const end = async () => {
      stop.abort();
      await cutting;
      healProxies(proxies);
    };
    return { target, end };
  },
  'slice-bytes': ({ workers }, { dice }) => {
    const proxies = workers.flatMap((worker) => worker.proxies.flat());
    for (const proxy of proxies) proxy.slice(1 + (dice % 9));
    return { target: 'all links', end: () => healProxies(proxies) };
  },
  'one-way-loss': ({ workers }, { dice }) => {
    const worker = oneOf(workers, dice);
    const direction = (['to-server', 'to-client', 'both'] as const)[(dice >>> 8) % 3]!;
    const proxies = (dice >>> 12) % 2 === 0 ? worker.proxies[0]! : worker.proxies.flat();
    for (const proxy of proxies) proxy.blackhole(direction);
    return { target: `${worker.client} ${direction}`, end: () => worker.healNetwork() };
  },
  'slow-links': ({ workers }, { dice }) => {
    const proxies = workers.flatMap((worker) => worker.proxies.flat());
    for (const [index, proxy] of proxies.entries()) {
      proxy.delay({ toServerMs: (dice >>> (index % 7)) % 60, toClientMs: (dice >>> (index % 11)) % 90 });
    }
    return { target: 'all links', end: () => healProxies(proxies) };
  },
  'slow-quorum': ({ ensemble }, { dice }) => {
    ensemble.links.slow(5 + (dice % 40));
    return { target: 'servers', end: () => ensemble.heal() };
  },
  // As the servers themselves do with containers that have stood empty: the next contender makes them anew.
  'delete-folders': async ({ admin }) => {
    // Of a simple lock the node of that path is no folder but the holder's.
    const withFolder = Object.keys(LOCKS).filter((name) => LOCKS[name]!.recipe !== 'simple');
    const deleting = withFolder.map(async (name) => {
      const path = `/locks/${name}`;
      try {
        await admin.delete(path);
        return name;
      } catch (error) {
        if (isServerError(error, 'not-empty') || isServerError(error, 'no-node')) return undefined;
        if (error instanceof ConnectionLossError) return `${name} (perhaps)`;
        throw error;
      }
    });
    const deleted = (await Promise.all(deleting)).filter((name) => name !== undefined);
    return { target: `folders ${deleted.join(' ') || '(all in use)'}`, end: () => {} };
  },
};

function oneOf<T>(items: readonly T[], dice: number): T {
  return items[dice % items.length]!;
}

async function followerOf(ensemble: ZooKeeperEnsemble, dice: number): Promise<ZooKeeperProcess> {
  await ensemble.leader();
  const followers = await ensemble.followers();
  return followers.length > 0 ? oneOf(followers, dice) : oneOf(ensemble.servers, dice);
}

async function startAgain(worker: Worker): Promise<void> {
  worker.healNetwork();
  worker.start();
  await worker.ready();
}

function paused(workers: readonly Worker[]): BegunFault {
  for (const worker of workers) {
    if (!worker.paused) worker.pause();
  }
  const end = () => {
    for (const worker of workers) worker.resume();
  };
  return { target: workers.map(({ client }) => client).join(' '), end };
}

async function killed(server: ZooKeeperProcess): Promise<BegunFault> {
  await server.kill();
  return { target: server.connectString, end: () => server.start() };
}

async function pausedServer(server: ZooKeeperProcess): Promise<BegunFault> {
  await server.pause();
  return { target: server.connectString, end: () => server.resume() };
}

function isolated(ensemble: ZooKeeperEnsemble, server: ZooKeeperProcess): BegunFault {
  ensemble.isolate(server);
  return { target: server.connectString, end: () => ensemble.heal() };
}
