import { FrameDecoder } from '../protocol/frame-decoder.ts';
import { Connect, Connected, SESSION_PASSWORD_BYTES } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { operations, xids } from '../protocol/operations.ts';
import { RequestHeader, type Stat } from '../protocol/records.ts';
import type { ServerAddress } from '../session/session-io.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { Link, LinkHandlers, Transport } from './transport.ts';

/** How long bytes are under way. */
const DELAY_MS = 1;

/** Servers that have one history: a session of one is known to all. */
export class ScriptedEnsemble {
  /** Their newest transaction. */
  zxid: bigint;
  readonly sessions = new Set<bigint>();

  constructor(zxid = 1n) {
    this.zxid = zxid;
  }
}

/** One server, by its host name. */
export interface ScriptedServer {
  ensemble: ScriptedEnsemble;
  /** `electing`: it accepts connections, and closes them at the handshake. `down`: nothing listens. */
  mode: 'serving' | 'electing' | 'down';
  /** Whether it turns away clients that have seen more than it has. ZooKeeper does, others do not. */
  looksAtZxid: boolean;
  /** Whether it answers `srvr`. */
  saysZxid: boolean;
  maxSessionTimeoutMs: number;
  /** How many connections were tried, and how many of them reached it. */
  dialCount: number;
  handshakeCount: number;
}

/** A network of servers in the same process, under one virtual clock: they answer what they are asked at once. */
export class ScriptedServers implements Transport {
  readonly clock = new VirtualClock();
  readonly #servers = new Map<string, ScriptedServer>();
  readonly #open = new Map<LinkHandlers, string>();
  #sessionCount = 0n;

  add(host: string, server: Partial<ScriptedServer> = {}): ScriptedServer {
    const made: ScriptedServer = {
      ensemble: new ScriptedEnsemble(),
      mode: 'serving',
      looksAtZxid: true,
      saysZxid: true,
      maxSessionTimeoutMs: 40_000,
      dialCount: 0,
      handshakeCount: 0,
      ...server,
    };
    this.#servers.set(host, made);
    return made;
  }

  /** Ends every connection to this server, or to all. */
  cut(host?: string): void {
    for (const [handlers, to] of this.#open) {
      if (host !== undefined && to !== host) continue;
      this.#open.delete(handlers);
      this.#later(() => handlers.closed(new Error('cut')));
    }
  }

  dial({ host }: ServerAddress, handlers: LinkHandlers): Link {
    const server = this.#servers.get(host)!;
    server.dialCount++;
    const frames = new FrameDecoder(1 << 24);
    let over = false;
    let greeted = false;
    const close = (error?: Error) => {
      this.#open.delete(handlers);
      this.#later(() => {
        if (!over) handlers.closed(error);
        over = true;
      });
    };
    const send = (bytes: Buffer) =>
      this.#later(() => {
        if (!over && this.#open.has(handlers)) handlers.received(bytes);
      });
    this.#later(() => {
      if (over) return;
      if (server.mode === 'down') return close(new Error('refused'));
      this.#open.set(handlers, host);
      handlers.opened();
    });
    const receive = (bytes: Buffer) => {
      if (over || !this.#open.has(handlers)) return;
      if (!greeted && bytes.toString('latin1') === 'srvr') {
        if (!server.saysZxid || server.mode !== 'serving') return close();
        return send(
          Buffer.from(
            `Zookeeper version: 3.8.0\nZxid: 0x${server.ensemble.zxid.toString(16)}\nMode: follower\n`,
          ),
        );
      }
      for (const frame of frames.push(bytes)) {
        const answer = greeted ? answerOf(server, frame) : this.#greet(server, frame);
        greeted = true;
        if (!answer) return close();
        send(answer);
      }
    };
    return {
      write: (bytes) => {
        const copy = Buffer.from(bytes);
        this.#later(() => receive(copy));
      },
      destroy: () => {
        over = true;
        this.#open.delete(handlers);
      },
    };
  }

  #later(run: () => void): void {
    this.clock.at(this.clock.nowMs() + DELAY_MS, run);
  }

  #greet(server: ScriptedServer, frame: Buffer): Buffer | undefined {
    server.handshakeCount++;
    const { sessionId, timeOut, lastZxidSeen } = Connect.read(new JuteReader(frame));
    const { ensemble } = server;
    if (server.mode !== 'serving' || (server.looksAtZxid && lastZxidSeen > ensemble.zxid)) return undefined;
    const isOver = sessionId !== 0n && !ensemble.sessions.has(sessionId);
    const id = isOver ? 0n : sessionId || ++this.#sessionCount;
    if (!isOver) ensemble.sessions.add(id);
    return framed((out) =>
      Connected.write(out, {
        protocolVersion: 0,
        timeOut: isOver ? 0 : Math.min(timeOut, server.maxSessionTimeoutMs),
        sessionId: id,
        passwd: Buffer.alloc(SESSION_PASSWORD_BYTES),
        readOnly: false,
      }),
    );
  }
}

const BLANK_STAT: Stat = {
  ...{ czxid: 0n, mzxid: 0n, pzxid: 0n, ctime: 0n, mtime: 0n, ephemeralOwner: 0n },
  ...{ version: 0, cversion: 0, aversion: 0, dataLength: 0, numChildren: 0 },
};

/** Says that the node does not exist, and yes to everything else. */
function answerOf({ ensemble }: ScriptedServer, frame: Buffer): Buffer {
  const { xid, type } = RequestHeader.read(new JuteReader(frame));
  return framed((out) => {
    out.int(xid);
    out.long(xid === xids.ping ? 0n : ensemble.zxid);
    out.int(type === operations.exists.opcode ? -101 : 0);
    if (type === operations.sync.opcode) out.ustring('/');
    if (type === operations.setData.opcode) operations.setData.reply.write(out, { stat: BLANK_STAT });
  });
}

function framed(write: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter();
  const mark = out.beginFrame();
  write(out);
  out.endFrame(mark);
  return Buffer.from(out.take());
}
