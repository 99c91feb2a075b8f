import { describe, expect, test } from 'vitest';
import { seededRandom } from '../base/random.ts';
import { ServerList } from './server-list.ts';

const servers = ['a', 'b', 'c'].map((host) => ({ host, port: 2181 }));
const UNREACHED = { servedMs: 0, opened: false };
const NOT_SERVING = { servedMs: 0, opened: true };

/** The delays before attempts that all end like this. */
function delays(
  end: { servedMs: number; opened: boolean },
  count: number,
  list = new ServerList(servers, seededRandom(1)),
) {
  return Array.from({ length: count }, () => {
    const { delayMs } = list.next();
    list.ended(end);
    return delayMs;
  });
}

describe('the next server', () => {
  test('is tried at once where nothing listens, until all have been tried', () => {
    expect(delays(UNREACHED, 6).map((delayMs) => delayMs > 0)).toEqual([
      false,
      false,
      false,
      true,
      false,
      false,
    ]);
  });

  test('is waited for where one listens and does not serve, longer each time', () => {
    const waits = delays(NOT_SERVING, 8);
    expect(waits[0]).toBe(0);
    for (const [index, boundMs] of [100, 200, 400, 800, 1_000, 1_000, 1_000].entries()) {
      expect(waits[index + 1]).toBeGreaterThanOrEqual(boundMs / 2);
      expect(waits[index + 1]).toBeLessThanOrEqual(boundMs);
    }
  });

  test('is not waited for behind one that nothing listens at, although the one before did not serve', () => {
    const list = new ServerList(servers, seededRandom(1));
    delays(NOT_SERVING, 3, list);
    list.next();
    list.ended(UNREACHED);
    expect(list.next().delayMs).toBe(0);
  });

  test('is tried within 50 ms after one that has served, and the waits begin anew', () => {
    const list = new ServerList(servers, seededRandom(1));
    delays(NOT_SERVING, 6, list);
    list.next();
    list.ended({ servedMs: 1_000, opened: true });
    expect(list.next().delayMs).toBeLessThan(50);
    list.ended(NOT_SERVING);
    expect(list.next().delayMs).toBeLessThanOrEqual(100);
  });

  test('is tried at once where the connection was cut, until all have been', () => {
    const cut = delays({ servedMs: 200, opened: true }, 6);
    expect(cut.map((delayMs) => delayMs > 0)).toEqual([false, false, false, true, false, false]);
  });

  test('is the preferred one, at once', () => {
    const list = new ServerList(servers, seededRandom(1));
    list.next();
    list.prefer(servers[1]!);
    list.ended(NOT_SERVING);
    expect(list.next()).toEqual({ server: servers[1], delayMs: 0 });
  });
});

describe('credentials', () => {
  const credentials = {};

  test('are given up when every server has refused them', () => {
    const list = new ServerList(servers, seededRandom(1));
    expect([0, 1, 1, 0].map((index) => list.refused(servers[index]!, credentials))).toEqual(
      Array(4).fill(false),
    );
    expect(list.refused(servers[2]!, {})).toBe(false);
    expect(list.refused(servers[2]!, credentials)).toBe(true);
  });

  test('are never given up once a server has taken them', () => {
    const list = new ServerList(servers, seededRandom(1));
    list.refused(servers[0]!, credentials);
    list.accepted(credentials);
    expect(servers.map((server) => list.refused(server, credentials))).toEqual([false, false, false]);
  });
});
