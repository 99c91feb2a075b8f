import { describe, expect, test } from 'vitest';
import { MemoryClient, StillClock } from './memory-client.test-data.ts';
import { ServerCore } from './server-core.ts';

/** Everything takes time: each look at the clock is a tenth of a millisecond later. */
class SlowClock extends StillClock {
  override nowMs(): number {
    this.ms += 0.1;
    return this.ms;
  }
}

const READ = ['exists', { path: '/', watch: false }] as const;

/** A chunk after the other, as a socket with much to read hands them out in one turn of the event loop. */
function askInChunks(client: MemoryClient): { readonly asked: number; readonly answered: number } {
  let asked = 0;
  while (!client.link.paused && asked < 200) asked += client.ask(READ, READ).length;
  return { asked, answered: client.replies().length };
}

describe('in one turn of the event loop', () => {
  test('a client has its share once, in however many chunks its requests come', () => {
    const core = new ServerCore({ clock: new SlowClock() });
    const busy = MemoryClient.connected(core);
    core.tick();
    const { asked, answered } = askInChunks(busy);
    expect(answered).toBeGreaterThan(0);
    expect(asked).toBeLessThan(20);
    expect(core.turnIsLong).toBe(true);
    core.tick();
    expect(busy.link.paused).toBe(false);
    expect(busy.replies()).toHaveLength(asked - answered);
    expect(askInChunks(busy).answered).toBeGreaterThan(0);
  });

  test('many busy clients have less each, and whoever has had nothing is heard', () => {
    const core = new ServerCore({ clock: new SlowClock() });
    const clients = Array.from({ length: 30 }, () => MemoryClient.connected(core));
    const quiet = MemoryClient.connected(core);
    core.tick();
    const heard = clients.map(askInChunks);
    expect(Math.min(...heard.map(({ answered }) => answered))).toBeGreaterThan(0);
    expect(heard.at(-1)!.answered).toBeLessThan(heard[0]!.answered);
    expect(quiet.call('exists', { path: '/', watch: false }).err).toBe(0);
    // What waits is done in later turns, and nothing is lost.
    for (let turns = 0; clients.some(({ link }) => link.paused); turns++) {
      expect(turns).toBeLessThan(clients.length);
      core.tick();
    }
    for (const [index, { asked, answered }] of heard.entries())
      expect(clients[index]!.replies()).toHaveLength(asked - answered);
  });
});
