import { describe, expect, test } from 'vitest';
import type { Session } from '../client/session.ts';
import type { ZooKeeper } from '../client/zookeeper.ts';
import { ConnectionGate } from './connection-gate.ts';

/** A client whose session is in whatever state it is told to be in. */
class Client {
  state: Session['state'] = 'suspended';
  readonly listeners = new Set<() => void>();
  readonly gate = new ConnectionGate(this as unknown as ZooKeeper, this as unknown as Session);

  on(_event: string, listener: () => void): () => void {
    // One for each event: a set of closures, as one listener may be there several times.
    const call = () => listener();
    this.listeners.add(call);
    return () => void this.listeners.delete(call);
  }

  become(state: Session['state']): void {
    this.state = state;
    for (const call of [...this.listeners]) call();
  }
}

describe('the gate of a session', () => {
  test.each(['connected', 'closing', 'closed', 'lost'] as const)('is open when it is %s', async (state) => {
    const client = new Client();
    client.state = state;
    expect(client.gate.isOpen).toBe(true);
    await client.gate.pass();
    expect(client.listeners.size).toBe(0);
  });

  test.each(['connecting', 'suspended'] as const)(
    'lets through in order what waits while %s',
    async (state) => {
      const client = new Client();
      client.state = state;
      const passed: number[] = [];
      const passing = [1, 2, 3].map(async (number) => {
        await client.gate.pass();
        passed.push(number);
      });
      client.become(state); // An event of another session.
      await new Promise((resolve) => setImmediate(resolve));
      expect(passed).toEqual([]);
      client.become('connected');
      await Promise.all(passing);
      expect(passed).toEqual([1, 2, 3]);
      expect(client.listeners.size).toBe(0);
    },
  );

  test('is passed only while it is open', async () => {
    const client = new Client();
    let isPassed = false;
    const passing = client.gate.pass().then(() => {
      isPassed = true;
    });
    client.become('connected');
    client.state = 'suspended'; // Before anybody has gone on.
    await new Promise((resolve) => setImmediate(resolve));
    expect(isPassed).toBe(false);
    client.become('connected');
    await passing;
  });

  test('keeps nothing of a wait that was given up', async () => {
    const client = new Client();
    const given = new AbortController();
    const passing = client.gate.pass(given.signal);
    const before = client.gate.pass(AbortSignal.abort(new Error('before')));
    await expect(before).rejects.toThrow('before');
    const called: string[] = [];
    const takeBack = client.gate.whenOpened(() => called.push('taken back'));
    client.gate.whenOpened(() => called.push('called'));
    takeBack();
    takeBack();
    given.abort(new Error('given up'));
    await expect(passing).rejects.toThrow('given up');
    client.become('connected');
    expect(called).toEqual(['called']);
    client.state = 'suspended';
    const again = new AbortController();
    const waiting = client.gate.pass(again.signal);
    expect(client.listeners.size).toBeGreaterThan(0);
    again.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(client.listeners.size).toBe(0);
  });
});
