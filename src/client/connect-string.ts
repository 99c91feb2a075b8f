import { socketAddress } from '../base/socket-address.ts';
import { utf8Bytes } from '../base/utf8-bytes.ts';
import { pathFault } from '../protocol/paths.ts';
import type { ServerAddress } from '../session/session-io.ts';

const PORT_DEFAULT = 2181;
/** What every system has room for, less a final zero; a longer path would be cut off silently by some. */
const SOCKET_PATH_BYTES_MAX = 103;

/** It stands in front of every path: what is sent together is reckoned with it. */
const CHROOT_BYTES_MAX = 1_024;

/** What a connect string says. */
export interface ConnectString {
  readonly servers: readonly ServerAddress[];
  /** The path that stands before every path of the client; empty for none. */
  readonly chroot: string;
}

/**
 * Parses `host1:2181,host2,[::1]:2181/chroot`. A server may also be `unix:/path/of.sock`, and then a chroot stands
 * behind another colon: `unix:/path/of.sock:/chroot`. In the path of a socket `%2C`, `%3A` and `%25` are `,`, `:`, `%`.
 *
 * @throws RangeError for a chroot of more than 1 024 bytes; TypeError saying which part is wrong and what is allowed there.
 */
export function parseConnectString(text: string): ConnectString {
  if (typeof text !== 'string')
    throw new TypeError(`connect string: ${typeof text} given; a string is needed`);
  const servers: ServerAddress[] = [];
  let rest = text;
  for (;;) {
    const [, server, end] = /^\s*(unix:\/[^,:]*|[^,/]*)(.*)$/s.exec(rest)!;
    servers.push(
      server!.startsWith('unix:/') ? parseSocket(server!, text) : parseServer(server!.trim(), text),
    );
    if (!end!.startsWith(',')) return { servers, chroot: parseChroot(end!.replace(/^:(?=\/)/, ''), text) };
    rest = end!.slice(1);
  }
}

/** For people: as it would stand in a connect string. */
export function addressText({ host, port }: ServerAddress): string {
  if (host.startsWith('/')) return socketAddress(host);
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function parseChroot(path: string, whole: string): string {
  if (path === '' || path === '/') return '';
  const fault = pathFault(path);
  if (fault) throw new TypeError(`connect string ${quote(whole)}: chroot ${quote(path)}: ${fault}`);
  const byteCount = utf8Bytes(path);
  if (byteCount > CHROOT_BYTES_MAX) {
    throw new RangeError(
      `connect string: chroot of ${byteCount} bytes in UTF-8; at most ${CHROOT_BYTES_MAX} are allowed`,
    );
  }
  return path;
}

function parseServer(text: string, whole: string): ServerAddress {
  const match = /^(?:\[([^[\]]+)\]|([^:[\]\s]+))(?::(\d+))?$/.exec(text);
  if (!match) {
    throw new TypeError(
      `connect string ${quote(whole)}: server ${quote(text)}; host, host:port, unix:/path or [ipv6]:port is needed`,
    );
  }
  const port = match[3] === undefined ? PORT_DEFAULT : Number(match[3]);
  if (port < 1 || port > 65_535) {
    throw new TypeError(`connect string ${quote(whole)}: port ${match[3]}; 1 to 65535 is allowed`);
  }
  return { host: match[1] ?? match[2]!, port };
}

function parseSocket(text: string, whole: string): ServerAddress {
  const escaped = text.slice('unix:'.length);
  const host = escaped.replaceAll(/%(2C|3A|25)/gi, (each) => decodeURIComponent(each));
  const byteCount = Buffer.byteLength(host);
  if (byteCount > SOCKET_PATH_BYTES_MAX) {
    throw new TypeError(
      `connect string ${quote(whole)}: socket path of ${byteCount} bytes; at most ${SOCKET_PATH_BYTES_MAX} are allowed`,
    );
  }
  return { host, port: 0 };
}

function quote(text: string): string {
  return JSON.stringify(text);
}
