import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { systemRandom } from '../base/random.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { MultiError, ServerError } from '../protocol/errors.ts';
import { parseEntry } from './entry-name.ts';
import { type Follower, Neighbours } from './neighbours.ts';
import type { QueueStore } from './queue-store.ts';
import { StoreSession } from './store-session.ts';
import { ZooKeeperPlace } from './zookeeper-place.ts';

const FOLDER = '/locks/m';
const OWN = '_c_00000000-0000-4000-8000-000000000001-lock-0000000001';
const NEXT_NAME = '_c_00000000-0000-4000-8000-000000000002-lock-0000000002';
const NEXT = `${FOLDER}/${NEXT_NAME}`;
const CHROOT = '/app';

/** A place of which everything that is asked for, and everyone who is told, is written down. */
function placeOf(
  log: string[],
  refusals: Error[],
  sessionFacts: Partial<Record<keyof Session, unknown>> = {},
): { place: ZooKeeperPlace; neighbours: Neighbours; session: Session; reconnect(): void } {
  const listeners = new Set<() => void>();
  const zk = {
    on(event: string, listener: () => void) {
      if (event === 'connected') listeners.add(listener);
      return () => listeners.delete(listener);
    },
    serverPath: (path: string) => `${CHROOT}${path}`,
    async multi(operations: readonly { readonly wire: { op: string; request: { path: string } } }[]) {
      log.push(operations.map(({ wire }) => `${wire.op} ${wire.request.path}`).join(', '));
      const refusal = refusals.shift();
      if (refusal) throw refusal;
      return [];
    },
    async delete(path: string) {
      log.push(`plain delete ${path}`);
    },
  } as unknown as ZooKeeper;
  const session = {
    lost: new AbortController().signal,
    state: 'connected',
    connectionCount: 1,
    isWriteLeftOpen: false,
    ...sessionFacts,
  } as unknown as Session;
  const neighbours = new Neighbours();
  const store = { zk, clock: systemClock, random: systemRandom, neighbours, batonFolder: '/batons' };
  const queue = {
    path: FOLDER,
    read: () => expect.unreachable(),
    viewSoon: () => expect.unreachable(),
    left: () => {},
  };
  const facts = { queue, entry: parseEntry(OWN)!, czxid: 1n, token: 1n, data: '' };
  const reconnect = () => {
    Object.assign(session, { state: 'connected' });
    for (const listener of [...listeners]) listener();
  };
  const shared = new StoreSession(store as QueueStore, session);
  return { place: new ZooKeeperPlace(shared, facts), neighbours, session, reconnect };
}

describe('a place that is let go of, with a neighbour behind it', () => {
  const SETTLED = 'told that nobody asks any more';
  const follow = (neighbours: Neighbours, log: string[], heirs: Follower['heirs'] = () => undefined) =>
    neighbours.follow(`${CHROOT}${FOLDER}/${OWN}`, {
      name: NEXT_NAME,
      departed: (departure) => log.push(`told ${departure}`),
      evict: () => log.push('told that it is removed'),
      heirs,
      aheadSettled: () => {
        log.push(SETTLED);
        return [];
      },
    });
  const heir = (name: string, heirs?: readonly Follower[]): Follower => ({
    name,
    departed: () => expect.unreachable(),
    evict: () => expect.unreachable(),
    heirs: () => heirs,
    aheadSettled: () => expect.unreachable(),
  });

  test('tells it, and goes only if its node is there', async () => {
    const log: string[] = [];
    const { place, neighbours } = placeOf(log, []);
    follow(neighbours, log);
    await place.leave({ released: true });
    expect(log).toEqual(['told released', `check ${NEXT}, delete ${FOLDER}/${OWN}`, SETTLED]);
  });

  test.each<readonly [string, Partial<Record<keyof Session, unknown>>, (session: Session) => void]>([
    ['the connection is lost', { state: 'suspended' }, () => {}],
    ['it is on another connection than it was', {}, (session) => void session.connectionCount++],
    ['a write was given up that may be done yet', { isWriteLeftOpen: true }, () => {}],
  ])('goes by the server alone where %s', async (_when, facts, happen) => {
    const log: string[] = [];
    const { place, neighbours, session, reconnect } = placeOf(log, [], facts);
    follow(neighbours, log);
    happen(session);
    const leaving = place.leave({ released: true });
    reconnect();
    await leaving;
    expect(log[0]).toBe('told gone');
    expect(log.slice(1)).toEqual([`plain delete ${FOLDER}/${OWN}`]);
  });

  test('goes if the node of whoever holds by then is there', async () => {
    const log: string[] = [];
    const { place, neighbours } = placeOf(log, []);
    follow(neighbours, log, () => [heir('second', [heir('third')])]);
    await place.leave({ released: true });
    expect(log).toEqual(['told released', `check ${FOLDER}/third, delete ${FOLDER}/${OWN}`, SETTLED]);
  });

  test('goes unasked if all who were told have let go', async () => {
    const log: string[] = [];
    const { place, neighbours } = placeOf(log, []);
    follow(neighbours, log, () => [heir('second', [])]);
    await place.leave({ released: true });
    expect(log).toEqual(['told released', `delete ${FOLDER}/${OWN}`, SETTLED]);
  });

  test('asks for the next holder, where the first was gone because it let go meanwhile', async () => {
    const log: string[] = [];
    const { place, neighbours } = placeOf(log, [new MultiError(errorCodes['no-node'], 'check', NEXT, 0)]);
    let heirs: readonly Follower[] | undefined;
    follow(neighbours, log, () => {
      if (log.length > 1) heirs = [heir('second')];
      return heirs;
    });
    await place.leave({ released: true });
    expect(log.filter((line) => !line.startsWith('told'))).toEqual([
      `check ${NEXT}, delete ${FOLDER}/${OWN}`,
      `check ${FOLDER}/second, delete ${FOLDER}/${OWN}`,
    ]);
  });

  test('tells it that it is removed, if it is, before it goes', async () => {
    const log: string[] = [];
    const { place, neighbours } = placeOf(log, [new MultiError(errorCodes['no-node'], 'check', NEXT, 0)]);
    follow(neighbours, log);
    await place.leave({ released: true });
    expect(log).toEqual([
      'told released',
      `check ${NEXT}, delete ${FOLDER}/${OWN}`,
      'told that it is removed',
      `delete ${FOLDER}/${OWN}`,
      SETTLED,
    ]);
  });

  test.each([
    [
      'is too long to be sent',
      new RangeError('multi: a request of 1160000 bytes; a server accepts at most 1048575'),
    ],
    ['is refused for whatever reason', new ServerError(errorCodes['no-auth'], 'multi')],
  ])('goes by a plain delete where the transaction %s', async (_what, refusal) => {
    const log: string[] = [];
    const { place, neighbours } = placeOf(log, [refusal]);
    follow(neighbours, log);
    await place.leave({ released: true });
    expect(log).toEqual([
      'told released',
      `check ${NEXT}, delete ${FOLDER}/${OWN}`,
      `plain delete ${FOLDER}/${OWN}`,
      SETTLED,
    ]);
    await place.leave(); // It is known to be done, not to have failed.
  });

  test('checks at most 128 of its successors in one transaction, and goes by the last', async () => {
    const log: string[] = [];
    const { place, neighbours } = placeOf(log, []);
    const heirs = Array.from({ length: 129 }, (_, index) => heir(`${index}`));
    follow(neighbours, log, () => heirs);
    await place.leave({ released: true });
    const [, first, last] = log;
    expect(first!.split(', ')).toHaveLength(128);
    expect(first).not.toContain('delete');
    expect(last).toBe(`check ${FOLDER}/128, delete ${FOLDER}/${OWN}`);
  });

  test('passes the baton where nobody of its process is behind it', async () => {
    const log: string[] = [];
    await placeOf(log, []).place.leave({ baton: true });
    expect(log).toEqual([`create2 /batons/${OWN}, delete /batons/${OWN}, delete ${FOLDER}/${OWN}`]);
  });
});

test('a place whose hold awaits a reconnection notices that its node was removed meanwhile', async () => {
  let state = 'suspended';
  const session = {
    lost: new AbortController().signal,
    hold: () => ({ remainingMs: () => 1_000, release: () => {}, onEnded: () => {} }),
    get state() {
      return state;
    },
    readOnly: false,
  } as unknown as Session;
  const zk = {
    serverPath: (path: string) => path,
    async sync() {
      state = 'connected';
    },
    async get(path: string) {
      throw new ServerError(errorCodes['no-node'], 'getData', path);
    },
  } as unknown as ZooKeeper;
  const store = {
    ...{ zk, clock: systemClock, random: systemRandom },
    ...{ neighbours: new Neighbours(), batonFolder: '/batons' },
  };
  const queue = { path: FOLDER, read: vi.fn(), viewSoon: vi.fn(), left: () => {} };
  const facts = { queue, entry: parseEntry(OWN)!, czxid: 1n, token: 1n, data: '' };
  const place = new ZooKeeperPlace(new StoreSession(store as unknown as QueueStore, session), facts);
  const evicted = vi.fn();
  place.attend({ evicted, revoked: () => {} });
  await place.hold();
  expect(evicted).toHaveBeenCalledOnce();
});
