import { pathFault } from '../protocol/paths.ts';
import type { ServerAddress } from '../session/session-io.ts';

const PORT_DEFAULT = 2181;

/** What a connect string says. */
export interface ConnectString {
  readonly servers: readonly ServerAddress[];
  /** The path that stands before every path of the client; empty for none. */
  readonly chroot: string;
}

/**
 * Parses `host1:2181,host2,[::1]:2181/chroot`.
 *
 * @throws TypeError saying which part is wrong and what is allowed there.
 */
export function parseConnectString(text: string): ConnectString {
  if (typeof text !== 'string')
    throw new TypeError(`connect string: ${typeof text} given; a string is needed`);
  const slash = text.indexOf('/');
  const hosts = slash < 0 ? text : text.slice(0, slash);
  const path = slash < 0 ? '/' : text.slice(slash);
  const fault = pathFault(path);
  if (fault) throw new TypeError(`connect string ${quote(text)}: chroot ${quote(path)}: ${fault}`);
  const servers = hosts.split(',').map((host) => parseServer(host.trim(), text));
  return { servers, chroot: path === '/' ? '' : path };
}

function parseServer(text: string, whole: string): ServerAddress {
  const match = /^(?:\[([^[\]]+)\]|([^:[\]\s]+))(?::(\d+))?$/.exec(text);
  if (!match) {
    throw new TypeError(
      `connect string ${quote(whole)}: server ${quote(text)}; host, host:port or [ipv6]:port is needed`,
    );
  }
  const port = match[3] === undefined ? PORT_DEFAULT : Number(match[3]);
  if (port < 1 || port > 65_535) {
    throw new TypeError(`connect string ${quote(whole)}: port ${match[3]}; 1 to 65535 is allowed`);
  }
  return { host: match[1] ?? match[2]!, port };
}

function quote(text: string): string {
  return JSON.stringify(text);
}
