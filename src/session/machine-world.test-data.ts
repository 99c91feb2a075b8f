import { seededRandom } from '../base/random.ts';
import { Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { operations } from '../protocol/operations.ts';
import { RequestHeader } from '../protocol/records.ts';
import { answerChallenge } from './sasl-digest-md5.ts';
import type { DialPlan, SessionEffect, SessionInput, SessionOptions } from './session-io.ts';
import { SessionMachine } from './session-machine.ts';
import { SessionRequest } from './session-request.ts';
import type { Watcher } from './watch-registry.ts';

export const SERVER = { host: 'zk', port: 2181 };
export const T = 3_000;
export const PASSWORD = Buffer.alloc(16, 7);

export function frame(write: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  write(out);
  out.endFrame(mark);
  return out.take();
}

export const granted = (id = 0x1000n, timeOut = T, readOnly = false) =>
  frame((out) =>
    Connected.write(out, { protocolVersion: 0, timeOut, sessionId: id, passwd: PASSWORD, readOnly }),
  );
export const reply = (xid: number, zxid: bigint, err = 0, body: (out: JuteWriter) => void = () => {}) =>
  frame((out) => {
    out.int(xid);
    out.long(zxid);
    out.int(err);
    body(out);
  });
export const event = (type: number, path: string) =>
  reply(-1, -1n, 0, (out) => {
    out.int(type);
    out.int(3);
    out.ustring(path);
  });
export const pong = reply(-2, 0n);

/** A machine, its time, and what a server would have seen of it. */
export class World {
  readonly machine: SessionMachine;
  readonly effects: SessionEffect[] = [];
  readonly delays: number[] = [];
  readonly preferred: unknown[] = [];
  /** How many servers have not refused the credentials. */
  serversLeft = 1;
  nowMs = 0;

  constructor(options: Partial<SessionOptions> = {}) {
    const plan: DialPlan = {
      next: () => ({ server: SERVER, delayMs: this.delays.shift() ?? 0 }),
      ended: () => {},
      prefer: (server) => void this.preferred.push(server),
      refused: () => this.serversLeft-- <= 1,
      accepted: () => {},
    };
    this.machine = new SessionMachine({
      timeoutMs: T,
      connectTimeoutMs: 1_000,
      requestBytesMax: 1_000_000,
      replyBytesMax: 1_000_000,
      queueLimits: { requestsMax: 1_000, bytesMax: 1_000_000 },
      readOnlyAllowed: false,
      seenZxid: 0n,
      gatherReads: undefined,
      heartbeat: 'leader',
      lease: { clockRateTolerance: 0.01, touchLagMs: 250 },
      credentials: { auths: [], sasl: undefined },
      plan,
      random: seededRandom(1),
      ...options,
    });
  }

  handle(input: SessionInput, atMs = this.nowMs): readonly SessionEffect[] {
    this.nowMs = atMs;
    const effects = this.machine.handle(input, atMs);
    this.effects.push(...effects);
    return effects;
  }

  receive(bytes: Buffer, atMs = this.nowMs): readonly SessionEffect[] {
    return this.handle({ kind: 'bytes-received', chunk: bytes }, atMs);
  }

  /** Lets time pass as a driver would: stopping wherever the machine wants to be woken. */
  passUntil(atMs: number): readonly SessionEffect[] {
    const effects: SessionEffect[] = [];
    for (;;) {
      const wakeAtMs = this.machine.wakeAtMs;
      if (wakeAtMs === undefined || wakeAtMs > atMs) break;
      effects.push(...this.handle({ kind: 'time-passed' }, Math.max(wakeAtMs, this.nowMs)));
    }
    this.nowMs = atMs;
    return effects;
  }

  connect(atMs = this.nowMs): readonly SessionEffect[] {
    this.handle({ kind: 'start' }, atMs);
    return this.open(atMs);
  }

  open(atMs = this.nowMs, answer = granted()): readonly SessionEffect[] {
    this.handle({ kind: 'link-opened' }, atMs);
    return this.receive(answer, atMs);
  }

  request<Q, R>(made: SessionRequest<Q, R>): SessionRequest {
    const request = made as unknown as SessionRequest;
    this.handle({ kind: 'request-made', request });
    return request;
  }

  flush(): readonly SessionEffect[] {
    return this.handle({ kind: 'flush' });
  }
}

export const get = (path: string, watcher?: Watcher) =>
  new SessionRequest(
    operations.getData,
    { path, watch: watcher !== undefined },
    watcher && { kind: 'data', path, watcher },
  );
export const remove = (path: string) => new SessionRequest(operations.delete, { path, version: -1 });
export const dataReply = (xid: number, zxid = 5n) =>
  reply(xid, zxid, 0, (out) => {
    out.buffer(null);
    for (let count = 0; count < 4; count++) out.long(0n);
    for (let count = 0; count < 3; count++) out.int(0);
    out.long(0n);
    out.int(0);
    out.int(0);
    out.long(0n);
  });

export const kinds = (effects: readonly SessionEffect[]) => effects.map(({ kind }) => kind);
export const states = (effects: readonly SessionEffect[]) =>
  effects.flatMap((effect) => (effect.kind === 'state-changed' ? [effect.state.kind] : []));
export const failures = (effects: readonly SessionEffect[]) =>
  effects.flatMap((effect) =>
    effect.kind === 'request-failed'
      ? [`${effect.request.operation.name}: ${effect.error.code} ${effect.error.outcome}`]
      : [],
  );

/** What was sent, as a server reads it: the xid and opcode of each frame behind the handshake. */
export function sentFrames(effects: readonly SessionEffect[]): { xid: number; type: number }[] {
  const frames: { xid: number; type: number }[] = [];
  for (const effect of effects) {
    if (effect.kind !== 'send') continue;
    for (let at = 0; at < effect.bytes.byteLength; ) {
      const end = at + 4 + effect.bytes.readInt32BE(at);
      frames.push(RequestHeader.read(new JuteReader(effect.bytes.subarray(at + 4, end))));
      at = end;
    }
  }
  return frames;
}
export const opcodes = (effects: readonly SessionEffect[]) => sentFrames(effects).map(({ type }) => type);

export const BOB = { username: 'bob', password: 'bobpw' };
const CHALLENGE = 'realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess';

export const token = (xid: number, text: string | null) =>
  reply(xid, 0n, 0, (out) => out.buffer(text === null ? null : Buffer.from(text)));

/** Every SASL token that was sent, with its xid. */
function tokensSent(effects: readonly SessionEffect[]): { xid: number; text: string }[] {
  return effects.flatMap((effect) => {
    if (effect.kind !== 'send' || effect.bytes.readInt32BE(8) !== operations.sasl.opcode) return [];
    const input = new JuteReader(effect.bytes.subarray(4));
    const { xid } = RequestHeader.read(input);
    return [{ xid, text: String(operations.sasl.request.read(input).token) }];
  });
}

/** Answers the handshake and the SASL exchange; `knows` is the password that this server knows. */
export function openWithSasl(
  world: World,
  atMs = world.nowMs,
  { answer = granted(), knows = BOB.password }: { readonly answer?: Buffer; readonly knows?: string } = {},
): readonly SessionEffect[] {
  const [first] = tokensSent(world.open(atMs, answer));
  const [second] = tokensSent(world.receive(token(first!.xid, CHALLENGE), atMs));
  const clientNonce = /cnonce="([^"]*)"/.exec(second!.text)![1]!;
  const { proof } = answerChallenge(CHALLENGE, { ...BOB, password: knows }, clientNonce);
  return world.receive(token(second!.xid, proof), atMs);
}
