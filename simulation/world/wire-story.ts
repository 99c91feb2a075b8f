import { eventTypes } from '../../src/protocol/constants.ts';
import { conditionOf } from '../../src/protocol/error-codes.ts';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { Connect, Connected } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { type Operation, operationOf, xids } from '../../src/protocol/operations.ts';
import { ReplyHeader, RequestHeader, WatcherEvent } from '../../src/protocol/records.ts';
import type { Arrival } from '../environment/simulated-network.ts';

const FRAME_BYTES_MAX = 16 * 1024 * 1024;

interface Conversation {
  readonly toServer: FrameDecoder;
  readonly toClient: FrameDecoder;
  readonly asked: {
    readonly xid: number;
    readonly text: string;
    readonly operation: Operation | undefined;
  }[];
  asksConnected: boolean;
  isConnected: boolean;
}

/** Puts what goes over the wire into words. */
export class WireStory {
  readonly #conversations = new Map<number, Conversation>();

  /** One line for each frame that is complete with these bytes. */
  lines({ link, to, bytes, client }: Arrival): string[] {
    const conversation = this.#conversations.get(link) ?? begun();
    this.#conversations.set(link, conversation);
    const who = `${client}/${link}`;
    try {
      return to === 'server'
        ? conversation.toServer.push(bytes).map((frame) => `${who} ──► ${this.#request(conversation, frame)}`)
        : conversation.toClient.push(bytes).map((frame) => `${who} ◄── ${this.#reply(conversation, frame)}`);
    } catch {
      return [`${who} ${to} ${bytes.byteLength} bytes that are not the protocol`];
    }
  }

  #request(conversation: Conversation, frame: Buffer): string {
    const input = new JuteReader(frame);
    if (!conversation.asksConnected) {
      conversation.asksConnected = true;
      const { sessionId, lastZxidSeen } = Connect.read(input);
      return `connect session ${hex(sessionId)}, seen ${hex(lastZxidSeen)}`;
    }
    const { xid, type } = RequestHeader.read(input);
    const operation = operationOf(type);
    const record = operation?.request.read(input);
    const text = `${operation?.name ?? `operation ${type}`} ${argumentOf(record)}`.trim();
    conversation.asked.push({ xid, text, operation });
    return text;
  }

  #reply(conversation: Conversation, frame: Buffer): string {
    const input = new JuteReader(frame);
    if (!conversation.isConnected) {
      conversation.isConnected = true;
      const { sessionId, timeOut } = Connected.read(input);
      return sessionId === 0n ? 'connected: no such session' : `connected ${hex(sessionId)}, ${timeOut} ms`;
    }
    const { xid, zxid, err } = ReplyHeader.read(input);
    if (xid === xids.notification) {
      const { type, path } = WatcherEvent.read(input);
      return `event ${eventTypes[type as keyof typeof eventTypes]} ${short(path)}`;
    }
    const index = conversation.asked.findIndex((asked) => asked.xid === xid);
    const [asked] = index < 0 ? [] : conversation.asked.splice(index, 1);
    if (err !== 0) return `${asked?.text ?? xid}: ${conditionOf(err)}`;
    const result = asked?.operation ? resultOf(asked.operation.reply.read(input)) : '';
    return `${asked?.text ?? xid}: ok ${hex(zxid)} ${result}`.trimEnd();
  }
}

function begun(): Conversation {
  return {
    toServer: new FrameDecoder(FRAME_BYTES_MAX),
    toClient: new FrameDecoder(FRAME_BYTES_MAX),
    asked: [],
    asksConnected: false,
    isConnected: false,
  };
}

function argumentOf(record: unknown): string {
  if (Array.isArray(record)) {
    return record.map(({ op, request }) => `${op} ${short(String(request.path))}`).join(', ');
  }
  if (typeof record !== 'object' || record === null) return '';
  const { path, watch } = record as { path?: string; watch?: boolean };
  if (path !== undefined) return `${short(path ?? '')}${watch ? ' and watch' : ''}`;
  const watches = Object.values(record).filter(Array.isArray).flat();
  return watches.map((each) => short(String(each))).join(', ');
}

function resultOf(reply: unknown): string {
  if (typeof reply !== 'object' || reply === null) return '';
  const { path, children } = reply as { path?: string; children?: readonly string[] };
  if (children) return `[${[...children].map(short).sort().join(', ')}]`;
  return path === undefined ? '' : short(path);
}

/** Paths and names without what nobody can keep apart: of a contender's id four digits, of its number no zeros. */
export function short(text: string): string {
  return text
    .replace(/_c_([0-9a-f]{4})[0-9a-f-]{32}-/g, '$1-')
    .replace(/(lock-|lease-|latch-|__READ__|__WRIT__)0*(\d)/g, '$1$2')
    .replace('/locks/', '');
}

function hex(id: bigint): string {
  return `0x${BigInt.asUintN(64, id).toString(16)}`;
}
