import { describe, expect, test } from 'vitest';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ConnectionLossError, MultiError } from '../protocol/errors.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { SecondOpinion } from './second-opinion.ts';

const TIMEOUT_MS = 4_000;

/** A server that shows some nodes, its leader that knows some, and a session that waits. */
class Scene {
  readonly clock = new VirtualClock();
  readonly log: string[] = [];
  readonly shown = new Set<string>();
  readonly known = new Set<string>();
  reachable = true;
  readonly #session = {
    timeoutMs: TIMEOUT_MS,
    leaveServer: ({ message }: Error) => this.log.push(`left: ${message}`),
  } as unknown as Session;
  readonly opinion = new SecondOpinion(this as unknown as ZooKeeper, this.#session, this.clock);

  async multi(operations: readonly { readonly wire: { op: string; request: { path: string } } }[]) {
    const paths = operations.map(({ wire }) => wire.request.path);
    this.log.push(`check ${paths.join(' ')}`);
    if (!this.reachable) throw new ConnectionLossError('multi', 'unknown');
    const missing = paths.findIndex((path) => !this.known.has(path));
    if (missing >= 0) throw new MultiError(errorCodes['no-node'], 'check', paths[missing], missing);
    return [];
  }

  async exists(path: string) {
    return this.shown.has(path) ? {} : undefined;
  }

  /** Waits for a node that the server shows, and that the leader knows unless it is a ghost. */
  wait(path: string, { ghost = false } = {}): () => void {
    this.shown.add(path);
    if (!ghost) this.known.add(path);
    return this.opinion.about(path, () => this.log.push(`looks for ${path}`));
  }
}

describe('the leader', () => {
  test('is asked about waits that last a session timeout, all at once, and then once in each', async () => {
    const scene = new Scene();
    scene.wait('/a');
    scene.wait('/b');
    scene.wait('/a');
    await scene.clock.advance(TIMEOUT_MS - 1);
    const stop = scene.wait('/late');
    expect(scene.log).toEqual([]);
    await scene.clock.advance(1);
    expect(scene.log).toEqual(['check /a /b']);
    await scene.clock.advance(TIMEOUT_MS);
    stop();
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log.slice(1)).toEqual(['check /a /b /late', 'check /a /b']);
  });

  test('is not asked about what is over, and nothing is left behind', async () => {
    const scene = new Scene();
    const stops = [scene.wait('/a'), scene.wait('/b')];
    for (const stop of stops) stop();
    expect(scene.clock.alarmCount).toBe(0);
    const stop = scene.wait('/c');
    await scene.clock.advance(2 * TIMEOUT_MS);
    expect(scene.log).toEqual(['check /c', 'check /c']);
    stop();
    expect(scene.clock.alarmCount).toBe(0);
  });

  test('that cannot be asked proves nothing', async () => {
    const scene = new Scene();
    scene.wait('/a', { ghost: true });
    scene.reachable = false;
    await scene.clock.advance(TIMEOUT_MS);
    scene.reachable = true;
    expect(scene.log).toEqual(['check /a']);
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log.slice(1)).toEqual(['check /a', expect.stringMatching(/^left: \/a is shown/)]);
  });
});

describe('a node that the leader does not know', () => {
  test('and the server shows costs that server the session', async () => {
    const scene = new Scene();
    scene.wait('/alive');
    scene.wait('/ghost', { ghost: true });
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log).toEqual([
      'check /alive /ghost',
      'left: /ghost is shown by this server, and unknown to its leader',
    ]);
  });

  test('and the server does not show either is looked for again, by all who wait for it', async () => {
    const scene = new Scene();
    scene.wait('/gone');
    scene.wait('/gone');
    scene.shown.clear();
    scene.known.clear();
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log).toEqual(['check /gone', 'looks for /gone', 'looks for /gone']);
  });

  test('and nobody waits for any more is of no interest', async () => {
    const scene = new Scene();
    const stop = scene.wait('/ghost', { ghost: true });
    const exists = scene.exists.bind(scene);
    scene.exists = async (path) => {
      stop(); // The event was on its way.
      return exists(path);
    };
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log).toEqual(['check /ghost']);
  });
});
