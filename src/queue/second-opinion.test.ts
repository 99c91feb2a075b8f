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
  readonly unreadable = new Set<string>();
  readonly lost = new AbortController();
  #watches: (() => void)[] = [];
  reachable = true;
  readonly #session = {
    timeoutMs: TIMEOUT_MS,
    lost: this.lost.signal,
    leaveServer: ({ message }: Error) => this.log.push(`left: ${message}`),
  } as unknown as Session;
  readonly opinion = new SecondOpinion(this as unknown as ZooKeeper, this.#session, this.clock);

  async multi(operations: readonly { readonly wire: { op: string; request: { path: string } } }[]) {
    const paths = operations.map(({ wire }) => wire.request.path);
    this.log.push(`check ${paths.join(' ')}`);
    if (!this.reachable) throw new ConnectionLossError('multi', 'unknown');
    const refused = paths.findIndex((path) => !this.known.has(path) || this.unreadable.has(path));
    if (refused < 0) return [];
    const condition = this.known.has(paths[refused]!) ? 'no-auth' : 'no-node';
    throw new MultiError(errorCodes[condition], 'check', paths[refused], refused);
  }

  async children(folder: string, { watch }: { watch: (event: { type: string }) => void }) {
    this.log.push(`list ${folder}`);
    this.#watches.push(() => watch({ type: 'node-children-changed' }));
    return [...this.shown]
      .filter((path) => path.startsWith(`${folder}/`))
      .map((path) => path.slice(folder.length + 1));
  }

  async unwatch() {}

  /** A node goes, and nobody is told but those who watch its folder. */
  async remove(path: string) {
    this.shown.delete(path);
    this.known.delete(path);
    for (const fire of this.#watches.splice(0)) fire();
    await this.clock.advance(100);
  }

  async exists(path: string) {
    return this.shown.has(path) ? {} : undefined;
  }

  /** Waits for a node that the server shows, and that the leader knows unless it is a ghost. */
  wait(path: string, { ghost = false, unreadable = false } = {}): () => void {
    this.shown.add(path);
    if (unreadable) this.unreadable.add(path);
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
    expect(scene.log.slice(1)).toEqual(['check /late /a /b', 'check /a /b']);
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

describe('any number of waits', () => {
  test.each([301, 1_000])('of %i, the last is asked about in the same round', async (count) => {
    const scene = new Scene();
    for (let index = 1; index < count; index++) scene.wait(`/alive-${index}`);
    scene.wait('/ghost', { ghost: true });
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log.at(-1)).toBe('left: /ghost is shown by this server, and unknown to its leader');
    const checks = scene.log.filter((line) => line.startsWith('check'));
    expect(checks).toHaveLength(Math.ceil(count / 300));
  });

  test('go into requests of at most 128 KiB', async () => {
    const scene = new Scene();
    for (let index = 0; index < 100; index++) scene.wait(`/${'n'.repeat(3_000)}-${index}`);
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log).toHaveLength(3);
    for (const line of scene.log) expect(line.length).toBeLessThanOrEqual(128 * 1024 + 'check '.length);
  });

  test('beyond 64 requests take turns', async () => {
    const scene = new Scene();
    for (let index = 0; index < 64 * 300; index++) scene.wait(`/alive-${index}`);
    scene.wait('/ghost', { ghost: true });
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log).toHaveLength(64);
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log[64]).toMatch(/^check \/ghost /);
    expect(scene.log[65]).toMatch(/^left: \/ghost/);
  });

  test('that are missed events are all looked for in one round', async () => {
    const scene = new Scene();
    for (const path of ['/a', '/b', '/c']) scene.wait(path);
    for (const path of ['/a', '/c']) {
      scene.known.delete(path);
      scene.shown.delete(path);
    }
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log).toEqual(['check /a /b /c', 'looks for /a', 'check /b /c', 'looks for /c']);
  });
});

describe('a node that may not be read', () => {
  test('keeps no other from being asked about, and is asked about by itself from then on', async () => {
    const scene = new Scene();
    scene.wait('/m/secret', { unreadable: true });
    scene.wait('/m/alive');
    scene.wait('/m/ghost', { ghost: true });
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log.filter((line) => line !== 'list /m')).toEqual([
      'check /m/secret /m/alive /m/ghost',
      'check /m/alive /m/ghost',
      'left: /m/ghost is shown by this server, and unknown to its leader',
    ]);
    scene.known.add('/m/ghost'); // As another server has it.
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log.slice(4)).toEqual(['check /m/alive /m/ghost', 'check /m/secret']);
  });

  test('is found out as a ghost too', async () => {
    const scene = new Scene();
    scene.wait('/m/secret', { unreadable: true });
    await scene.clock.advance(TIMEOUT_MS);
    scene.known.delete('/m/secret');
    await scene.clock.advance(TIMEOUT_MS);
    expect(scene.log.at(-1)).toBe('left: /m/secret is shown by this server, and unknown to its leader');
  });

  test('is looked for when it is not in its folder any more, though nobody may say so', async () => {
    const scene = new Scene();
    const stop = scene.wait('/m/secret', { unreadable: true });
    const stopOther = scene.wait('/m/other');
    await scene.clock.advance(TIMEOUT_MS);
    stopOther();
    await scene.remove('/m/other');
    expect(scene.log.slice(-1)).toEqual(['list /m']);
    await scene.remove('/m/secret');
    expect(scene.log.slice(-2)).toEqual(['list /m', 'looks for /m/secret']);
    stop();
    // Whoever waits in this folder later learns of it at once.
    const stopLater = scene.wait('/m/later', { unreadable: true });
    await scene.clock.advance(100);
    await scene.remove('/m/later');
    expect(scene.log.slice(-2)).toEqual(['list /m', 'looks for /m/later']);
    stopLater();
  });

  test('is listed for no longer than it is waited for', async () => {
    const scene = new Scene();
    const stop = scene.wait('/m/secret', { unreadable: true });
    await scene.clock.advance(TIMEOUT_MS);
    stop();
    await scene.clock.advance(100);
    const { length } = scene.log;
    await scene.remove('/m/secret');
    expect(scene.log).toHaveLength(length);
    expect(scene.clock.alarmCount).toBe(0);
  });
});
