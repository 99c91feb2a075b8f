import { describe, expect, test } from 'vitest';
import { deferred } from '../base/deferred.ts';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { ConnectionLossError } from '../protocol/errors.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { BatchedWrites } from './batched-writes.ts';
import { CatchUp } from './catch-up.ts';
import { ConnectionGate } from './connection-gate.ts';
import type { LeavingConnection } from './neighbours.ts';

const OTHER = {} as Session;
const by = (more: Partial<LeavingConnection> = {}): LeavingConnection => ({
  session: OTHER,
  lastZxid: 100n,
  carriesAllWrites: false,
  ...more,
});
/** As an ensemble of ZooKeeper shows itself. */
const MEMBERS = 'server.1=host:2888:3888:participant;0.0.0.0:2181\nversion=0';

/** A session that has seen transaction 50, and what it asks of a server that answers when the test says so. */
class Scene {
  readonly clock = new VirtualClock();
  readonly session = {
    lastZxid: 50n,
    connectionCount: 1,
    lost: new AbortController().signal,
    flush: () => {},
  };
  readonly writes: { resolve(): void; reject(error: Error): void }[] = [];
  readonly looks: { resolve(answer: { data: Buffer | null }): void; reject(error: Error): void }[] = [];
  readonly catchUp: CatchUp;

  constructor() {
    const zk = {
      multi: (operations: readonly unknown[]) => {
        expect(operations).toEqual([]);
        const answer = deferred<readonly unknown[]>();
        this.writes.push({ resolve: () => answer.resolve([]), reject: answer.reject });
        return answer.promise;
      },
      config: () => {
        const answer = deferred<{ data: Buffer | null }>();
        this.looks.push(answer);
        return answer.promise;
      },
    } as unknown as ZooKeeper;
    const { clock } = this;
    const session = this.session as unknown as Session;
    const writes = new BatchedWrites(zk, session, { clock, gate: new ConnectionGate(zk, session) });
    this.catchUp = new CatchUp(zk, session, { clock, writes });
  }

  /** Lets reactions run, and the end of the tick come. */
  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.clock.advance(0);
    await new Promise((resolve) => setImmediate(resolve));
  }

  async learn(data: string | null): Promise<void> {
    this.catchUp.prepare();
    this.looks.at(-1)!.resolve({ data: data === null ? null : Buffer.from(data) });
    await this.turn();
  }
}

describe('a session that is handed a lock by another', () => {
  test('waits for an answer to a write that changes nothing', async () => {
    const scene = new Scene();
    let done = false;
    void scene.catchUp.after(by())!.then(() => {
      done = true;
    });
    await scene.turn();
    expect(scene.writes).toHaveLength(1);
    expect(done).toBe(false);
    scene.writes[0]!.resolve();
    await scene.turn();
    expect(done).toBe(true);
  });

  test('makes one write for all locks that it is handed before that leaves, and none later joins them', async () => {
    const scene = new Scene();
    const first = scene.catchUp.after(by());
    expect(scene.catchUp.after(by())).toBe(first);
    await scene.turn();
    expect(scene.writes).toHaveLength(1);
    expect(scene.catchUp.after(by())).not.toBe(first);
    await scene.turn();
    expect(scene.writes).toHaveLength(2);
  });

  test('makes it again if a lost connection left it without an answer', async () => {
    const scene = new Scene();
    let done = false;
    void scene.catchUp.after(by())!.then(() => {
      done = true;
    });
    await scene.turn();
    scene.writes[0]!.reject(new ConnectionLossError('multi', 'unknown'));
    await scene.turn();
    expect(done).toBe(false);
    scene.writes[1]!.resolve();
    await scene.turn();
    expect(done).toBe(true);
  });

  test('has nothing to catch up with within itself', () => {
    const scene = new Scene();
    expect(scene.catchUp.after(by({ session: scene.session as unknown as Session }))).toBeUndefined();
  });

  test.each([
    ['is the only one', '', false],
    ['is the only one, and says so by no data', null, false],
    ['is a member of an ensemble', MEMBERS, true],
  ])('of a server that %s', async (_what, data, writes) => {
    const scene = new Scene();
    await scene.learn(data);
    expect(scene.catchUp.after(by()) !== undefined).toBe(writes);
  });

  test('takes a server for one of several until it has said otherwise, and if it does not say', async () => {
    const scene = new Scene();
    scene.catchUp.prepare();
    expect(scene.catchUp.after(by())).toBeDefined();
    scene.looks[0]!.reject(new Error('no such node'));
    await scene.turn();
    expect(scene.catchUp.after(by())).toBeDefined();
    scene.catchUp.prepare();
    expect(scene.looks).toHaveLength(1); // Asked once for each connection.
  });

  test('knows nothing of the server of another connection', async () => {
    const scene = new Scene();
    await scene.learn('');
    scene.session.connectionCount++;
    expect(scene.catchUp.after(by())).toBeDefined();
    scene.catchUp.prepare();
    scene.session.connectionCount++; // The answer comes by a third.
    scene.looks[1]!.resolve({ data: null });
    await scene.turn();
    expect(scene.catchUp.after(by())).toBeDefined();
    await scene.learn('');
    expect(scene.catchUp.after(by())).toBeUndefined();
  });

  test('catches up only with what the other has seen, where that connection carries all writes', () => {
    const scene = new Scene();
    expect(scene.catchUp.after(by({ carriesAllWrites: true, lastZxid: 50n }))).toBeUndefined();
    expect(scene.catchUp.after(by({ carriesAllWrites: true, lastZxid: 51n }))).toBeDefined();
    expect(scene.catchUp.after(by({ carriesAllWrites: false, lastZxid: 50n }))).toBeDefined();
  });
});
