import { systemRandom } from '../../base/random.ts';
import { connect, type Holdfast, type HoldfastOptions } from '../../locks/holdfast.ts';
import { startServer } from '../../server/start-server.ts';
import type { ConnectionFlags } from '../connection.ts';
import type { Console } from '../console.ts';

/** Sessions of the embedded server may be short: nobody is to wait long for one to end. */
const EMBEDDED_LIMITS = { tickMs: 100, sessionTimeoutMsMin: 500, sessionTimeoutMsMax: 60_000 };
const EMBEDDED_SESSION_MS = 2_000;
/** The shortest that ZooKeeper grants with its stock tick of 2 s. */
const CONFIGURED_SESSION_MS = 4_000;

/** Where a demonstration takes place: servers, and a folder of its own there that goes with it. */
export interface Stage extends AsyncDisposable {
  /** For people: which servers. */
  readonly description: string;
  /** How to connect to it. */
  readonly options: HoldfastOptions;
  /** The stage's own connection. */
  readonly holdfast: Holdfast;
}

/** On the servers that are configured, or on one of its own in this process. */
export async function openStage(flags: ConnectionFlags, env: Console['env']): Promise<Stage> {
  const {
    servers = env['HOLDFAST_SERVERS'],
    auth,
    sessionTimeout: sessionTimeoutMs = CONFIGURED_SESSION_MS,
  } = flags;
  if (servers === undefined || servers === '' || servers === 'local') return embeddedStage();
  return stageOn({ servers, sessionTimeoutMs, ...(auth && { auth }) }, servers, async () => {});
}

/** On a server of its own, whatever is configured. */
export async function embeddedStage(): Promise<Stage> {
  const server = await startServer({ limits: EMBEDDED_LIMITS });
  try {
    const options = { servers: server.connectString, sessionTimeoutMs: EMBEDDED_SESSION_MS };
    return await stageOn(options, `an embedded server on ${server.connectString}`, () => server.stop());
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function stageOn(
  connecting: HoldfastOptions,
  description: string,
  stop: () => Promise<void>,
): Promise<Stage> {
  const folder = `/holdfast-demo-${Buffer.from(systemRandom.bytes(6)).toString('hex')}`;
  const options = {
    ...connecting,
    app: 'demo',
    root: `${folder}/locks`,
    batonFolder: `${folder}/batons`,
    auditFolder: `${folder}/audit`,
  };
  const holdfast = await connect(options);
  // A container: should this process be killed, the servers remove it once it is empty.
  await holdfast.zk.ensurePath(folder, { mode: 'container' });
  return {
    description,
    options,
    holdfast,
    async [Symbol.asyncDispose]() {
      try {
        await holdfast.zk.deleteTree(folder);
        await holdfast.close();
      } finally {
        await stop();
      }
    },
  };
}
