// How many requests a client sends, read off the bytes of one connection. Pure: bytes in, a count out.
import type { ServerKind } from './contestants.ts';

/** For one connection: what a piece of it, cut anywhere, completes. */
export type RequestCounter = (chunk: Buffer) => number;

const HTTP2_PREFACE_BYTES = 24;
const HTTP2_HEADER_BYTES = 9;
const HTTP2_DATA_FRAME = 0;
const ZOOKEEPER_PING = 11;

/** Takes whole units off the bytes that came so far. Undefined is: not all of it is here yet. */
type Cut = (bytes: Buffer) => { readonly length: number; readonly isRequest: boolean } | undefined;

function counterOf(cut: Cut): RequestCounter {
  let pending: Buffer = Buffer.alloc(0);
  return (chunk) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    let count = 0;
    for (let unit = cut(pending); unit; unit = cut(pending)) {
      if (unit.isRequest) count++;
      pending = pending.subarray(unit.length);
    }
    return count;
  };
}

/** Frames with their length in front. The first opens the session; a ping keeps it. */
function zookeeper(): RequestCounter {
  let opened = false;
  return counterOf((bytes) => {
    if (bytes.length < 4) return undefined;
    const length = 4 + bytes.readInt32BE(0);
    if (bytes.length < length) return undefined;
    const isRequest = opened && bytes.readInt32BE(8) !== ZOOKEEPER_PING;
    opened = true;
    return { length, isRequest };
  });
}

/** Each command is an array of strings: `*2`, then twice `$3` and three bytes, with line ends. */
function redis(): RequestCounter {
  return counterOf((bytes) => {
    let at = 0;
    const number = () => {
      const end = bytes.indexOf('\r\n', at);
      if (end < 0) return undefined;
      const value = Number(bytes.toString('latin1', at + 1, end));
      at = end + 2;
      return value;
    };
    const parts = number();
    if (parts === undefined) return undefined;
    for (let part = 0; part < parts; part++) {
      const length = number();
      if (length === undefined) return undefined;
      at += length + 2;
    }
    return at > bytes.length ? undefined : { length: at, isRequest: true };
  });
}

/** HTTP/2: every message of a call, and of a stream that is kept open, is a data frame. */
function etcd(): RequestCounter {
  let greeted = false;
  return counterOf((bytes) => {
    if (!greeted) {
      if (bytes.length < HTTP2_PREFACE_BYTES) return undefined;
      greeted = true;
      return { length: HTTP2_PREFACE_BYTES, isRequest: false };
    }
    if (bytes.length < HTTP2_HEADER_BYTES) return undefined;
    const payload = bytes.readUIntBE(0, 3);
    const length = HTTP2_HEADER_BYTES + payload;
    if (bytes.length < length) return undefined;
    return { length, isRequest: bytes[3] === HTTP2_DATA_FRAME && payload > 0 };
  });
}

export const requestCounters: Readonly<Record<ServerKind, () => RequestCounter>> = {
  zookeeper,
  embedded: zookeeper,
  redis,
  etcd,
};
