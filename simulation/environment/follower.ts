import type { Clock } from '../../src/base/clock.ts';
import { ProtocolError } from '../../src/protocol/errors.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { JuteWriter } from '../../src/protocol/jute-writer.ts';
import { type Operation, operations, xids } from '../../src/protocol/operations.ts';
import { ReplyHeader, RequestHeader } from '../../src/protocol/records.ts';
import { Refusal } from '../../src/server/access.ts';
import { DataTree, statOf } from '../../src/server/data-tree.ts';
import { childrenOf, ReadOperations } from '../../src/server/read-operations.ts';
import type { Peer, ServerLink } from '../../src/server/server-connection.ts';
import type { Transaction } from '../../src/server/transaction.ts';
import type { SimulatedListener } from './simulated-network.ts';

const FRAME_BYTES_MAX = 4 * 1024 * 1024;
/** How long a follower goes on by itself before it finds that its leader is gone: four ticks. */
const NOTICES_AFTER_MS = 2_000;

/** The server that decides, as a follower reaches it. */
export interface Leader {
  readonly listener: SimulatedListener;
  readonly tree: DataTree;
  readonly zxid: bigint;
  isAlive(): boolean;
  /** Whether all that it has done may be seen. */
  isSettled(): boolean;
}

/** What a follower knows by itself: the tree as it was a while ago. */
interface Replica {
  readonly tree: DataTree;
  readonly reads: ReadOperations;
  zxid: bigint;
}

/** How far a follower is behind, and what it has yet to learn. */
interface Lag {
  readonly replica: Replica;
  readonly lagMs: number;
  readonly news: Transaction[];
}

/** What goes between a follower and its leader takes up to this long, and touches of sessions half a tick. */
export interface FollowerOptions {
  readonly clock: Clock;
  leader(): Leader | undefined;
  lagMs(): number;
  readonly touchLagMs: number;
}

/**
 * A server that passes on what it is asked, and answers by itself what followers do: pings, at once, whose senders its
 * leader hears of half a tick later; and reads of what it has last seen, when it is cut off from its leader and has not
 * noticed, or when it lags. Whatever needs the leader waits while it is cut off, and all that came after it on the same
 * connection.
 *
 * One that lags learns of everything so much later: of transactions, and with them of what its clients are told. So
 * what a client reads here is old, but never older than what it was told before, nor newer than what it will be told
 * next; after a sync, or a write of its own, it is as new as that.
 */
export class Follower implements SimulatedListener {
  readonly #options: FollowerOptions;
  readonly #connections = new Set<FollowerConnection>();
  #isolated: Replica | undefined;
  #lagging: Lag | undefined;
  #noticed = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  get isAlone(): boolean {
    return this.#isolated !== undefined;
  }
  /** What it answers by itself; undefined while it keeps up with its leader. */
  get replica(): Replica | undefined {
    return this.#isolated ?? this.#lagging?.replica;
  }
  /** How far it is behind, while it is. */
  get lagMs(): number | undefined {
    return this.#lagging?.lagMs;
  }

  /** Cuts it off from its leader; the function returned ends that. */
  isolate(): () => void {
    const leader = this.#options.leader();
    if (!leader || this.#isolated) return () => {};
    this.#catchUp();
    this.#isolated = replicaOf(leader);
    const { clock } = this.#options;
    const cancel = clock.at(clock.nowMs() + NOTICES_AFTER_MS, () => {
      this.#noticed = true;
      this.#drop(true);
    });
    return () => {
      cancel();
      this.#noticed = false;
      this.#isolated = undefined;
      for (const connection of this.#connections) connection.goOn();
    };
  }

  /** From now on it is so far behind its leader; the function returned ends that. */
  lag(lagMs: number): () => void {
    const { clock } = this.#options;
    let over = false;
    let mine: Lag | undefined;
    const begin = () => {
      const leader = this.#options.leader();
      if (over || !leader || this.#lagging || this.#isolated) return;
      // It would know what nobody may see yet.
      if (!leader.isSettled()) return void clock.at(clock.nowMs() + 1, begin);
      this.#deliver();
      mine = { replica: replicaOf(leader), lagMs, news: [] };
      this.#lagging = mine;
    };
    begin();
    return () => {
      over = true;
      if (mine && this.#lagging === mine) this.#catchUp();
    };
  }

  /** The leader has done this, and all that it has to tell of it comes after. */
  committed(transaction: Transaction): void {
    const lagging = this.#lagging;
    if (!lagging) return;
    const { clock } = this.#options;
    lagging.news.push(transaction);
    clock.at(clock.nowMs() + lagging.lagMs, () => learn(lagging, transaction));
  }

  /** It knows what its leader knows, and so do its clients. */
  #catchUp(): void {
    this.#lagging = undefined;
    this.#deliver();
  }

  #deliver(): void {
    for (const connection of this.#connections) connection.catchUp();
  }

  /** Without a leader it serves nobody. */
  leaderDied(): void {
    this.#lagging = undefined;
    this.#drop(false);
  }

  #drop(leaderLives: boolean): void {
    for (const connection of this.#connections) connection.end(leaderLives);
    this.#connections.clear();
  }

  accept(link: ServerLink, peer: Peer): object | undefined {
    const leader = this.#options.leader();
    if (!leader || this.#noticed || this.#isolated) {
      link.destroy();
      return undefined;
    }
    const connection = new FollowerConnection(this, this.#options, { link, peer, leader });
    this.#connections.add(connection);
    return connection;
  }

  receive(connection: object, chunk: Buffer): void {
    (connection as FollowerConnection).receive(chunk);
  }

  closed(connection: object): void {
    this.#connections.delete(connection as FollowerConnection);
    (connection as FollowerConnection).clientClosed();
  }

  drained(): void {}
  stepped(): void {}
}

/** What a request waits for: the leader's answer, or its turn to be answered here. */
interface Pending {
  /** Encoded, if it is answered here. */
  readonly local: (() => Buffer) | undefined;
}

/** Something on its way. */
interface Passage {
  readonly arrive: () => void;
}

class FollowerConnection {
  readonly #follower: Follower;
  readonly #options: FollowerOptions;
  readonly #client: ServerLink;
  readonly #leader: Leader;
  readonly #up: object | undefined;
  readonly #fromClient = new FrameDecoder(FRAME_BYTES_MAX);
  readonly #fromLeader = new FrameDecoder(FRAME_BYTES_MAX);
  /** Requests in the order they came, the unanswered ones. */
  readonly #pending: Pending[] = [];
  /** What is on its way between follower and leader, each way in order. */
  readonly #underway: Readonly<Record<'up' | 'down', Passage[]>> = { up: [], down: [] };
  /** The newest of it that has been held up by the cut. */
  readonly #heldUp: { up?: Passage; down?: Passage } = {};
  /** Whether the connect request was passed on, and whether it was answered. */
  #handshaken = false;
  #connected = false;
  #over = false;

  constructor(
    follower: Follower,
    options: FollowerOptions,
    { link, peer, leader }: { readonly link: ServerLink; readonly peer: Peer; readonly leader: Leader },
  ) {
    this.#follower = follower;
    this.#options = options;
    this.#client = link;
    this.#leader = leader;
    this.#up = leader.listener.accept(this.#leaderSide(), peer);
    leader.listener.stepped();
  }

  receive(chunk: Buffer): void {
    for (const frame of this.#framesOf(chunk)) this.#request(framed(frame), frame);
  }

  /** A four-letter word is no frame: whoever asks a follower one is hung up on. */
  #framesOf(chunk: Buffer): Buffer[] {
    if (this.#over) return [];
    try {
      return this.#fromClient.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.end(this.#leader.isAlive());
      return [];
    }
  }

  clientClosed(): void {
    this.#over = true;
    this.#send('up', () => {
      if (this.#up && this.#leader.isAlive()) this.#leader.listener.closed(this.#up);
      this.#leader.listener.stepped();
    });
  }

  end(leaderLives: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#client.destroy();
    if (!leaderLives) return;
    if (this.#up) this.#leader.listener.closed(this.#up);
    this.#leader.listener.stepped();
  }

  /** All that the leader has said has arrived. */
  catchUp(): void {
    const newest = this.#underway.down.at(-1);
    if (newest) this.#arriveUpTo('down', newest);
  }

  /** The leader is back: what was held up goes on. */
  goOn(): void {
    const { clock } = this.#options;
    for (const heading of ['up', 'down'] as const) {
      const held = this.#heldUp[heading];
      if (held) clock.at(clock.nowMs(), () => this.#arrive(heading, held));
      delete this.#heldUp[heading];
    }
  }

  #request(bytes: Buffer, frame: Buffer): void {
    if (!this.#handshaken) {
      this.#handshaken = true;
      return this.#pass(bytes);
    }
    const input = new JuteReader(frame);
    const { xid, type } = RequestHeader.read(input);
    if (type === operations.ping.opcode) return this.#ping(bytes);
    // What comes behind a request to the leader must show what that has done.
    const replica = this.#pending.length === 0 ? this.#follower.replica : undefined;
    const local = replica && this.#localAnswer(xid, type, input, replica);
    this.#pending.push({ local });
    if (local) this.#answerLocally();
    else this.#pass(bytes);
  }

  /** Answered here at once; the leader hears of it half a tick later, and its own answer goes nowhere. */
  #ping(bytes: Buffer): void {
    const { clock, touchLagMs } = this.#options;
    const zxid = this.#follower.replica?.zxid ?? this.#leader.zxid;
    this.#pending.push({ local: () => reply(xids.ping, zxid, 0) });
    this.#answerLocally();
    clock.at(clock.nowMs() + touchLagMs, () => {
      if (!this.#over && !this.#follower.isAlone) this.#give(bytes);
    });
  }

  #localAnswer(
    xid: number,
    opcode: number,
    input: JuteReader,
    { reads, zxid }: Replica,
  ): (() => Buffer) | undefined {
    const listed = (path: string) => {
      const node = reads.getChildren(path, []);
      return { children: childrenOf(node), stat: statOf(node) };
    };
    const got = (path: string) => {
      const node = reads.getData(path, []);
      return { data: node.data, stat: statOf(node) };
    };
    const answers: Readonly<Record<number, readonly [Operation, (path: string) => unknown]>> = {
      [operations.exists.opcode]: [operations.exists, (path) => ({ stat: statOf(reads.exists(path, [])) })],
      [operations.getData.opcode]: [operations.getData, got],
      [operations.getChildren.opcode]: [operations.getChildren, listed],
      [operations.getChildren2.opcode]: [operations.getChildren2, listed],
    };
    const answer = answers[opcode];
    if (!answer) return undefined;
    const [operation, read] = answer;
    const { path, watch } = operation.request.read(input) as { path: string; watch: boolean };
    // A watch would be told of when the leader is back; here the request waits for that instead.
    if (watch) return undefined;
    return () => {
      try {
        const value = read(path);
        return reply(xid, zxid, 0, (out) => operation.reply.write(out, value));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return reply(xid, zxid, error.serverCode);
      }
    };
  }

  /** What can be answered here is, behind all that came before it. */
  #answerLocally(): void {
    while (this.#pending[0]?.local) this.#client.write(this.#pending.shift()!.local!());
  }

  #pass(bytes: Buffer): void {
    this.#send('up', () => this.#give(bytes));
  }

  #give(bytes: Buffer): void {
    if (!this.#leader.isAlive()) return;
    if (this.#up) this.#leader.listener.receive(this.#up, bytes);
    this.#leader.listener.stepped();
  }

  #leaderSide(): ServerLink {
    const client = this.#client;
    return {
      write: (bytes) => {
        const copy = Buffer.from(bytes);
        this.#send('down', () => this.#answered(copy));
      },
      end: () => this.#send('down', () => client.end()),
      destroy: () => this.#send('down', () => client.destroy()),
      pause: () => {},
      resume: () => {},
      get bufferedBytes() {
        return client.bufferedBytes;
      },
    };
  }

  #answered(bytes: Buffer): void {
    for (const frame of this.#fromLeader.push(bytes)) {
      const xid = frame.byteLength >= 4 ? frame.readInt32BE(0) : 0;
      if (this.#connected && xid === xids.ping) continue;
      if (this.#connected && xid !== xids.notification) this.#pending.shift();
      this.#connected = true;
      this.#client.write(framed(frame));
      this.#answerLocally();
    }
  }

  #send(heading: 'up' | 'down', arrive: () => void): void {
    const { clock, lagMs } = this.#options;
    const passage: Passage = { arrive };
    this.#underway[heading].push(passage);
    // What comes from a leader that it lags behind comes exactly when it learns of what that is about.
    const takesMs = (heading === 'down' ? this.#follower.lagMs : undefined) ?? lagMs();
    clock.at(clock.nowMs() + takesMs, () => this.#arrive(heading, passage));
  }

  #arrive(heading: 'up' | 'down', passage: Passage): void {
    if (this.#follower.isAlone) this.#heldUp[heading] = passage;
    else this.#arriveUpTo(heading, passage);
  }

  /** Nothing overtakes: what was on its way before it arrives with it. */
  #arriveUpTo(heading: 'up' | 'down', passage: Passage): void {
    const underway = this.#underway[heading];
    while (underway.includes(passage)) underway.shift()!.arrive();
  }
}

function learn({ replica, news }: Lag, transaction: Transaction): void {
  if (news[0] !== transaction) return;
  news.shift();
  replica.zxid = transaction.zxid;
  if (transaction.kind === 'open-session') return;
  for (const change of transaction.changes) replica.tree.apply(change, transaction);
}

function replicaOf({ tree, zxid }: Leader): Replica {
  const copy = copyOf(tree);
  return { tree: copy, reads: new ReadOperations(copy, FRAME_BYTES_MAX), zxid };
}

function framed(frame: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(frame.byteLength + 4);
  bytes.writeInt32BE(frame.byteLength, 0);
  frame.copy(bytes, 4);
  return bytes;
}

function reply(xid: number, zxid: bigint, err: number, write?: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  ReplyHeader.write(out, { xid, zxid, err });
  write?.(out);
  out.endFrame(mark);
  return Buffer.from(out.take());
}

/** The tree as it is now. */
function copyOf(tree: DataTree): DataTree {
  const copy = new DataTree();
  const visit = (path: string) => {
    const node = tree.get(path)!;
    if (!copy.get(path)) {
      const { data, acl, owner, czxid, ctimeMs } = node;
      copy.apply({ kind: 'create', path, data, acl, owner }, { zxid: czxid, timeMs: ctimeMs });
    }
    for (const name of node.children ?? []) visit(path === '/' ? `/${name}` : `${path}/${name}`);
    const { data, mzxid, pzxid, mtimeMs, version, createCount } = node;
    Object.assign(copy.get(path)!, { data, mzxid, pzxid, mtimeMs, version, createCount });
  };
  visit('/');
  return copy;
}
