import { type Random, seededRandom } from '../../src/base/random.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations, xids } from '../../src/protocol/operations.ts';
import {
  connectFrame,
  MemoryClient,
  node,
  SlowClock,
  StillClock,
} from '../../src/server/memory-client.test-data.ts';
import { ServerCore } from '../../src/server/server-core.ts';
import type { ServerLimits } from '../../src/server/server-limits.ts';
import { below, fuzzedFrame, pick } from './fuzzed-frames.ts';
import { checkInvariants } from './tree-invariants.ts';

const CLIENTS = 6;
const FRAMES_PER_BATCH = 2_000;
const BATCHES_PER_SERVER = 20;
const FRAMES_PER_CHUNK_MAX = 12;
/** How often the disk has to take what waits until nothing does. */
const ROUNDS_MAX = 1_000;
/** Small, so that limits are met and what lies beyond them is walked too. */
const LIMITS: Partial<ServerLimits> = {
  nodesMax: 60,
  dataBytesMax: 6_000,
  watchesMax: 50,
  watchesPerConnectionMax: 15,
  identityBytesMax: 300,
  multiOpsMax: 4,
  outstandingMax: 30,
  outstandingPerConnectionMax: 8,
  nodeBytesMax: 290,
  replyBytesMax: 500,
  outputBytesMax: 20_000,
  reapMs: 2_000,
};
const HOME = '/home-of-the-healthy-client';

/** What came of a run. */
export interface FuzzResult {
  readonly frames: number;
  readonly answered: number;
  readonly dropped: number;
  readonly rssGrowthBytes: number;
}

/** One client that sends whatever it likes, and knows what answers it is owed. */
class HostileClient {
  client: MemoryClient;
  readonly owed: number[] = [];
  answered = 0;
  dropped = 0;
  readonly #world: World;
  #nextXid = 1;

  constructor(world: World) {
    this.#world = world;
    this.client = this.#connect();
  }

  send(random: Random): number {
    if (this.client.link.over) {
      this.dropped++;
      this.owed.length = 0;
      this.client = this.#connect();
    }
    // Gone without a word, often while something is under way.
    if (below(random, 60) === 0) {
      this.#world.core.closed(this.client.connection);
      this.owed.length = 0;
      this.client = this.#connect();
    }
    if (below(random, 40) === 0) this.client.link.reads = false;
    else if (!this.client.link.reads) this.client.readAll();
    const count = 1 + below(random, FRAMES_PER_CHUNK_MAX);
    const parts: Buffer[] = [];
    for (let index = 0; index < count; index++) {
      const xid = this.#nextXid++;
      const { bytes, opcode, broken } = fuzzedFrame(random, xid);
      parts.push(bytes);
      if (broken) {
        this.owed.push(Number.NaN); // From here on, nobody can say.
        break;
      }
      this.owed.push(opcode === operations.ping.opcode ? xids.ping : xid);
    }
    const chunk = Buffer.concat(parts);
    const cut = below(random, 4) === 0 ? below(random, chunk.byteLength) : 0;
    for (const part of [chunk.subarray(0, cut), chunk.subarray(cut)])
      if (part.byteLength > 0) this.client.send(part);
    return parts.length;
  }

  /** Each request is answered once, in order: what came must be the beginning of what is owed. */
  hear(): void {
    for (const { xid } of this.client.replies()) {
      if (xid === xids.notification) continue;
      const owed = this.owed.shift();
      if (Number.isNaN(owed)) {
        this.owed.unshift(Number.NaN);
        return;
      }
      if (owed !== xid) throw new Error(`an answer to ${xid} where one to ${owed} was due`);
      this.answered++;
    }
  }

  /** Nothing holds an answer back any more. */
  settle(): void {
    this.client.readAll();
    this.#world.sync();
    this.hear();
    if (!this.client.link.over && this.owed.length > 0 && !Number.isNaN(this.owed[0])) {
      throw new Error(`${this.owed.length} requests were never answered`);
    }
  }

  #connect(): MemoryClient {
    const { core, random } = this.#world;
    const client = new MemoryClient(core);
    const session = pick(random, [undefined, ...core.sessions.all()]);
    const returning = below(random, 3) === 0 && session && session !== this.#world.healthySession;
    client.send(
      connectFrame(
        returning
          ? { sessionId: session.id, passwd: below(random, 2) === 0 ? session.password : Buffer.alloc(16) }
          : { timeOut: pick(random, [0, -1, 4_000, 10_000]) },
      ),
    );
    this.#world.sync();
    client.handshakeAnswer();
    return client;
  }
}

/** A server, a client that behaves, and some that do not. */
class World {
  /** On a slow machine nearly everything is done in slices. */
  readonly clock: StillClock;
  readonly core: ServerCore;
  readonly random: Random;
  readonly #onDisk: boolean;
  readonly #healthy: MemoryClient;
  readonly hostile: readonly HostileClient[];
  #version = 0;

  constructor(random: Random) {
    this.random = random;
    this.#onDisk = below(random, 2) === 0;
    this.clock = below(random, 2) === 0 ? new SlowClock() : new StillClock();
    this.core = new ServerCore({
      clock: this.clock,
      random,
      limits: LIMITS,
      ...(this.#onDisk && { journal: { append: () => {} } }),
    });
    this.#healthy = new MemoryClient(this.core);
    this.#healthy.send(connectFrame({ timeOut: 40_000 }));
    this.sync();
    this.#healthy.handshakeAnswer();
    this.#ask('auth', { type: 0, scheme: 'digest', auth: Buffer.from('healthy:secret') });
    const acl = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
    this.#ask('create', { ...node(HOME, Buffer.from('0')), acl });
    this.#ask('create', { ...node(`${HOME}/child`), acl });
    this.hostile = Array.from({ length: CLIENTS }, () => new HostileClient(this));
  }

  get healthySession() {
    return this.#healthy.connection.session;
  }

  /** The disk has taken everything, as often as it takes for everything that waited for it. */
  sync(): void {
    this.#takeTurns();
    if (!this.#onDisk) return;
    for (let zxid = -1n, rounds = 0; zxid !== this.core.zxid || this.core.outstandingCount > 0; rounds++) {
      if (rounds > ROUNDS_MAX) throw new Error(`${this.core.outstandingCount} requests wait for nothing`);
      zxid = this.core.zxid;
      this.core.durable(zxid);
      this.#takeTurns();
    }
  }

  /** As many turns as it takes for everything that waited for one. */
  #takeTurns(): void {
    for (let turns = 0; this.core.turnIsLong; turns++) {
      if (turns > ROUNDS_MAX) throw new Error('there is always something left to do');
      this.core.tick();
    }
  }

  batch(): number {
    let frames = 0;
    while (frames < FRAMES_PER_BATCH) {
      const client = pick(this.random, this.hostile);
      frames += client.send(this.random);
      if (below(this.random, 4) === 0) this.sync();
      client.hear();
      if (below(this.random, 30) === 0) this.#pass(below(this.random, 800));
    }
    for (const client of this.hostile) client.settle();
    this.sync();
    this.#checkHealthy();
    checkInvariants(this.core);
    return frames;
  }

  #pass(ms: number): void {
    this.clock.ms += ms;
    this.core.tick();
    if (below(this.random, 4) === 0) this.#ask('ping');
  }

  #checkHealthy(): void {
    this.#ask('setData', { path: HOME, data: Buffer.from(`${this.#version + 1}`), version: this.#version });
    this.#version++;
    const { data } = this.#ask('getData', { path: HOME, watch: false }) as { data: Buffer };
    if (data.toString() !== `${this.#version}`) throw new Error(`the healthy client reads ${data}`);
    const { children } = this.#ask('getChildren', { path: HOME, watch: false }) as { children: string[] };
    if (children.join() !== 'child') throw new Error(`the healthy client sees ${children}`);
  }

  #ask(name: keyof typeof operations, record?: unknown): unknown {
    this.#healthy.ask([name, record]);
    this.sync();
    const [reply, ...others] = this.#healthy.replies();
    if (!reply || others.length > 0)
      throw new Error(`${name} of the healthy client: ${others.length} answers more`);
    if (reply.err !== 0) throw new Error(`${name} of the healthy client: error ${reply.err}`);
    return operations[name].reply.read(new JuteReader(reply.body));
  }
}

/** Feeds fuzzed frames to a server core. A failure names the seed of the server it happened to. */
export function fuzzCore(options: {
  readonly frames: number;
  readonly seed: number;
  readonly onProgress?: (frames: number) => void;
}): FuzzResult {
  const { stackTraceLimit } = Error;
  // Stacks take most of the time of a refusal, and only a replay needs them.
  if (options.frames > FRAMES_PER_BATCH * BATCHES_PER_SERVER) Error.stackTraceLimit = 0;
  let [frames, answered, dropped] = [0, 0, 0];
  let startRssBytes = 0;
  try {
    for (let seed = options.seed; frames < options.frames; seed++) {
      try {
        const world = new World(seededRandom(seed));
        for (let batch = 0; batch < BATCHES_PER_SERVER && frames < options.frames; batch++)
          frames += world.batch();
        for (const client of world.hostile) {
          answered += client.answered;
          dropped += client.dropped;
        }
      } catch (error) {
        throw new Error(
          `after ${frames} frames; replay with --frames 40000 --seed ${seed}: ${(error as Error).message}`,
          { cause: error },
        );
      }
      options.onProgress?.(frames);
      if (startRssBytes === 0) startRssBytes = process.memoryUsage.rss();
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return { frames, answered, dropped, rssGrowthBytes: process.memoryUsage.rss() - startRssBytes };
}
