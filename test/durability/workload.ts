import { expect } from 'vitest';
import { ops, type ZooKeeper } from '../../src/zookeeper.ts';

/** What one writer was told, and what it does not know. */
interface Ledger {
  readonly path: string;
  /** The newest version that was answered. */
  answered: number;
  /** The newest version that was asked for. */
  asked: number;
}

/**
 * Writers that count upwards, each in a node of its own. Every third step is a multi that also makes two nodes, which
 * are there both or not at all; every fifth makes a sequential one. All that is answered is remembered, and looked for
 * after a crash.
 */
export class Workload {
  readonly #ledgers: Ledger[] = [];
  /** The highest number that any answer carried. */
  #zxid = 0n;
  readonly #sequential = new Set<string>();
  #markers = 0;

  static async begin(zk: ZooKeeper, writers: number): Promise<Workload> {
    const workload = new Workload();
    await zk.create('/log', '');
    for (let index = 0; index < writers; index++) {
      const { path, stat } = await zk.create(`/writer-${index}`, '0');
      workload.#ledgers.push({ path, answered: 0, asked: 0 });
      workload.#zxid = stat.czxid;
    }
    return workload;
  }

  get answeredCount(): number {
    return this.#ledgers.reduce((sum, { answered }) => sum + answered, this.#sequential.size);
  }

  /** Writes until the connections die; the writers share the clients. */
  async run(clients: readonly ZooKeeper[]): Promise<void> {
    await Promise.all(
      this.#ledgers.map((ledger, index) => this.#write(clients[index % clients.length]!, ledger)),
    );
  }

  async #write(zk: ZooKeeper, ledger: Ledger): Promise<void> {
    try {
      for (;;) {
        ledger.asked = ledger.answered + 1;
        const { path, asked, answered } = ledger;
        const set = ops.set(path, `${asked}`, answered);
        let zxid: bigint;
        if (asked % 3 === 0) {
          const pair = [
            ops.create(`${path}/a-${asked}`, 'x'),
            ops.create(`${path}/b-${asked}`, 'x'),
          ] as const;
          zxid = (await zk.multi([pair[0], set, pair[1]]))[1].mzxid;
        } else zxid = (await zk.set(path, `${asked}`, { version: answered })).mzxid;
        this.#seen(zxid);
        ledger.answered = asked;
        if (asked % 5 !== 0) continue;
        const made = await zk.create('/log/n-', '', { mode: 'persistent-sequential' });
        this.#seen(made.stat.czxid);
        expect(this.#sequential.has(made.path)).toBe(false);
        this.#sequential.add(made.path);
      }
    } catch (error) {
      if ((error as { outcome?: string }).outcome === undefined) throw error;
    }
  }

  #seen(zxid: bigint): void {
    if (zxid > this.#zxid) this.#zxid = zxid;
  }

  /** Nothing that was answered is lost, nothing is half-applied, no number is used twice. */
  async verify(zk: ZooKeeper, what: string): Promise<void> {
    const { stat: marker } = await zk.create('/marker-', '', { mode: 'persistent-sequential' });
    this.#markers++;
    expect(marker.czxid, `${what}: no number is used twice`).toBeGreaterThan(this.#zxid);
    this.#seen(marker.czxid);
    for (const ledger of this.#ledgers) {
      const { data, stat } = await zk.get(ledger.path);
      expect([ledger.answered, ledger.asked], what).toContain(stat.version);
      expect(data?.toString(), what).toBe(String(stat.version));
      const pairs = Array.from({ length: Math.floor(stat.version / 3) }, (_, index) => 3 * (index + 1));
      const expected = pairs.flatMap((number) => [`a-${number}`, `b-${number}`]).sort();
      expect((await zk.children(ledger.path)).sort(), what).toEqual(expected);
      ledger.answered = stat.version;
    }
    const present = new Set((await zk.children('/log')).map((name) => `/log/${name}`));
    for (const path of this.#sequential) expect(present.has(path), `${what}: ${path} is there`).toBe(true);
    for (const path of present) this.#sequential.add(path);
    const markers = (await zk.children('/')).filter((name) => name.startsWith('marker-'));
    expect(markers, what).toHaveLength(this.#markers);
  }
}
