import { Connected } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operationOf, operations, xids } from '../../src/protocol/operations.ts';
import { ReplyHeader } from '../../src/protocol/records.ts';
import { bodyOf } from './encode-call.ts';
import { type Address, type Collected, FrameConnection } from './frame-client.ts';
import type { Call, Scenario, Step } from './scenario.ts';
import { type Line, Transcript } from './transcript.ts';

const TIMEOUT_MS = 30_000;
const EXPIRY_TIMEOUT_MS = 1_000;
const UNKNOWN_SESSIONS = 0x0177_7777_0000_0000n;
const FUTURE = 0x7fff_ffff_ffff_0000n;
const CLOSE_WAIT_MS = 5_000;
const CLOSE_SESSION: Call = { name: 'closeSession', opcode: operations.closeSession.opcode };
const PING: Call = { name: 'ping', opcode: operations.ping.opcode, xid: xids.ping };

type Handshake = Omit<Extract<Step, { kind: 'connect' }>, 'kind' | 'session'>;
const RETURN: Handshake = { as: 'itself', timeoutMs: TIMEOUT_MS, seen: 'all', readOnly: false };

interface Client {
  connection: FrameConnection | undefined;
  id: bigint;
  password: Buffer;
  nextXid: number;
}

/** One server's run of a scenario: performs the steps and tells what came of each. */
export class Side {
  readonly #address: Address;
  readonly #prefix: string;
  readonly #seed: number;
  readonly #keepsOldConnections: boolean;
  readonly #clients: Client[];
  readonly #transcript = new Transcript();
  /** What had been seen after each step. */
  readonly #seenAfter: bigint[] = [];

  /** `keepsOldConnections`: one that was replaced may be left open by mistake, and is shown as closed then. */
  constructor(
    address: Address,
    scenario: Scenario,
    options: { readonly keepsOldConnections?: boolean } = {},
  ) {
    this.#keepsOldConnections = options.keepsOldConnections ?? false;
    this.#address = address;
    this.#prefix = scenario.prefix;
    this.#seed = scenario.seed;
    this.#clients = Array.from({ length: scenario.sessions }, () => ({
      connection: undefined,
      id: 0n,
      password: Buffer.alloc(16),
      nextXid: 1,
    }));
  }

  /** Performs one step and shows everything that any connection received because of it. */
  async perform(step: Step): Promise<string[]> {
    const told: [session: number, lines: Line[]][] = [];
    const tell = (session: number, lines: readonly Line[]) => void told.push([session, [...lines]]);
    this.#transcript.advance();
    const ends = await this.#act(step, tell);
    this.#transcript.advance();
    if (changesAnything(step)) await this.#listen(step.session, tell);
    this.#seenAfter.push(this.#transcript.seenZxid);
    return told.flatMap(([session, lines]) => {
      const texts = (ends ? eventsSorted(lines) : lines.map((line) => line.text())) as string[];
      return texts.map((text) => `session ${session} < ${text}`);
    });
  }

  /** Ends every session, so that nothing of this scenario happens during the next. */
  async end(): Promise<void> {
    for (const client of this.#clients) {
      if (client.id === 0n) continue;
      if (!client.connection || client.connection.closed) await this.#connect(client, RETURN);
      if (client.connection && !client.connection.closed) await this.#exchange(client, [CLOSE_SESSION]);
      await client.connection?.drop();
    }
  }

  /** Whether nodes went in an order of the server's own choice. */
  async #act(step: Step, tell: (session: number, lines: readonly Line[]) => void): Promise<boolean> {
    const client = this.#clients[step.session]!;
    switch (step.kind) {
      case 'drop':
        await client.connection?.drop();
        client.connection = undefined;
        return false;
      case 'connect':
        tell(step.session, await this.#connect(client, step));
        return false;
      case 'expire':
        tell(step.session, await this.#open(client));
        tell(step.session, await this.#connect(client, { ...RETURN, timeoutMs: EXPIRY_TIMEOUT_MS }));
        tell(step.session, await this.#untilClosed(client));
        return true;
      case 'request':
      case 'burst': {
        const calls = step.kind === 'request' ? [step.call] : step.calls;
        tell(step.session, await this.#open(client));
        tell(step.session, await this.#exchange(client, calls));
        return calls.some(({ opcode }) => opcode === operations.closeSession.opcode);
      }
    }
  }

  /** What the others were told, which is ahead of the answer to a ping sent after the fact. */
  async #listen(acting: number, tell: (session: number, lines: readonly Line[]) => void): Promise<void> {
    const others = this.#clients
      .map((client, session) => ({ client, session }))
      .filter(({ client, session }) => session !== acting && client.connection);
    const heard = await Promise.all(others.map(({ client }) => this.#collect(client, [PING])));
    others.forEach(({ client, session }, index) => {
      tell(session, this.#lines(client, heard[index]!, [PING]));
    });
  }

  // Connections

  /** A connection, by whatever it takes: a client whose session is over starts another. */
  async #open(client: Client): Promise<Line[]> {
    if (client.connection && !client.connection.closed) return [];
    const lines = await this.#connect(client, RETURN);
    if (client.connection) return lines;
    client.id = 0n;
    client.password = Buffer.alloc(16);
    return [...lines, ...(await this.#connect(client, RETURN))];
  }

  async #connect(client: Client, how: Handshake): Promise<Line[]> {
    const previous = client.connection;
    const connection = await FrameConnection.open(this.#address);
    const { id, password } = this.#credentials(client, how.as);
    const lastZxidSeen =
      how.seen === 'all' ? this.#transcript.seenZxid : how.seen === 'nothing' ? 0n : FUTURE;
    const collected = await connection.handshake({
      protocolVersion: 0,
      lastZxidSeen,
      timeOut: how.timeoutMs,
      sessionId: id,
      passwd: password,
      readOnly: how.readOnly,
    });
    const lines = collected.frames.map((frame) => this.#transcript.handshake(frame));
    const answer = collected.frames[0] && Connected.read(new JuteReader(collected.frames[0]));
    if (answer && answer.timeOut > 0) {
      Object.assign(client, { connection, id: answer.sessionId, password: answer.passwd, nextXid: 1 });
    } else {
      lines.push(...ending(await connection.collect(() => false, CLOSE_WAIT_MS)));
      await connection.drop();
    }
    const guessed = how.as === 'wrong password' || how.as === 'short password';
    if (previous && guessed && client.connection === previous) {
      await previous.drop(); // One side has closed it by now, the other has not.
      client.connection = undefined;
    } else if (previous) lines.push(...(await this.#fate(client, previous)));
    return lines;
  }

  #credentials({ id, password }: Client, as: Handshake['as']): { id: bigint; password: Buffer } {
    switch (as) {
      case 'itself':
        return { id, password };
      case 'wrong password':
        return { id, password: Buffer.alloc(16, 1) };
      case 'short password':
        return { id, password: Buffer.alloc(3, 1) };
      case 'unknown session':
        // Each scenario has its own: whoever claims a session, known or not, cuts off the one who claimed it last.
        return { id: UNKNOWN_SESSIONS + BigInt(this.#seed), password };
    }
  }

  /** Whether a new connection, or the attempt, has cost the old one. */
  async #fate(client: Client, previous: FrameConnection): Promise<Line[]> {
    if (client.connection !== previous) {
      const end = await previous.collect(() => false, CLOSE_WAIT_MS);
      await previous.drop();
      const forgotten = this.#keepsOldConnections && end.ended === 'silence';
      return [note(`the old connection: ${forgotten ? 'closed' : end.ended}`), ...this.#events(end)];
    }
    const heard = await this.#collect(client, [PING]);
    if (heard.ended === 'closed') client.connection = undefined;
    return [note('the old connection:'), ...this.#lines(client, heard, [PING])];
  }

  async #untilClosed(client: Client): Promise<Line[]> {
    const end = await client.connection!.collect(() => false, 4 * EXPIRY_TIMEOUT_MS + CLOSE_WAIT_MS);
    client.connection = undefined;
    return [...this.#events(end), ...ending(end)];
  }

  // Requests

  async #exchange(client: Client, calls: readonly Call[]): Promise<Line[]> {
    const collected = await this.#collect(client, calls);
    const lines = this.#lines(client, collected, calls);
    const { connection } = client;
    if (!connection || !collected.frames.some((frame) => costsTheConnection(frame, calls))) return lines;
    const end = await connection.collect(() => false, CLOSE_WAIT_MS);
    await connection.drop();
    client.connection = undefined;
    return [...lines, ...this.#events(end), ...ending(end)];
  }

  async #collect({ connection, ...client }: Client, calls: readonly Call[]): Promise<Collected> {
    const requests = calls.map((call, index) => ({
      xid: call.xid ?? client.nextXid + index,
      opcode: call.opcode,
      body: bodyOf(call, this.#prefix, this.#seenAfter[call.seenUntil ?? 0] ?? 0n),
    }));
    connection!.send(requests);
    return connection!.collect((frames) => frames.filter((frame) => !isEvent(frame)).length >= calls.length);
  }

  #lines(client: Client, { frames, ended }: Collected, calls: readonly Call[]): Line[] {
    client.nextXid += calls.length;
    let answered = 0;
    const lines = frames.map((frame) =>
      this.#transcript.frame(frame, isEvent(frame) ? undefined : calls[answered++]),
    );
    if (ended !== 'answered') lines.push(note(ended));
    if (ended === 'closed') client.connection = undefined;
    return lines;
  }

  #events({ frames }: Collected): Line[] {
    return frames.map((frame) => this.#transcript.frame(frame, undefined));
  }
}

function isEvent(frame: Buffer): boolean {
  return frame.readInt32BE(0) === xids.notification;
}

/** After some answers the server hangs up; it takes a moment. */
function costsTheConnection(frame: Buffer, calls: readonly Call[]): boolean {
  const { err, zxid, xid } = ReplyHeader.read(new JuteReader(frame));
  if (xid === xids.notification) return false;
  if (err === -115 || (err === -6 && zxid === -1n)) return true;
  return calls.some(({ opcode }) => opcode === operations.closeSession.opcode);
}

/** Reads change nothing that others could be told of. */
function changesAnything(step: Step): boolean {
  if (step.kind === 'expire') return true;
  if (step.kind !== 'request' && step.kind !== 'burst') return false;
  const calls = step.kind === 'request' ? [step.call] : step.calls;
  return calls.some(({ opcode }) => operationOf(opcode)?.writes === true);
}

function note(text: string): Line {
  return { isEvent: false, text: () => text };
}

function ending({ ended }: Collected): Line[] {
  return [note(ended === 'closed' ? 'closed' : 'stays open')];
}

/** The nodes of a session that ends go in the order of a hash set, and so do the events they cause. */
function eventsSorted(lines: readonly Line[]): string[] {
  const events = lines.filter(({ isEvent }) => isEvent).map((line) => line.text());
  return [...events.sort(), ...lines.filter(({ isEvent }) => !isEvent).map((line) => line.text())];
}
