import { givenOf } from '../base/option-names.ts';
import { assembleServer, type RunningServer, type ServerOptions } from '../server/start-server.ts';
import { controlsOf, type ServerControls } from './server-controls.ts';

/** A server that does what a test tells it to. */
export interface TestServer extends RunningServer, ServerControls {}

/** Short, so that a test may ask for sessions that end while it waits. */
const TEST_LIMITS = { tickMs: 100, sessionTimeoutMsMin: 200 };

/**
 * Starts a server in this process with controls for tests. Unlike `startServer`'s, its tick is 100 ms and sessions may
 * be as short as 200 ms, unless `limits` says otherwise.
 *
 * ```ts
 * await using server = await startTestServer();
 * await using zk = await connect(server.connectString);
 * server.expireSession(zk.session.id);
 * ```
 */
export async function startTestServer(options: ServerOptions = {}): Promise<TestServer> {
  const assembled = await assembleServer({
    ...options,
    limits: { ...TEST_LIMITS, ...givenOf(options.limits ?? {}) },
  });
  // Properties are copied one by one, since a spread would read `paused` once and for all.
  return Object.defineProperties(
    { ...assembled.running },
    Object.getOwnPropertyDescriptors(controlsOf(assembled)),
  ) as TestServer;
}
