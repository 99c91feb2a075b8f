import { systemClock } from '../../base/clock.ts';
import type { ServerAddress } from '../../session/session-io.ts';
import { type ConnectionFlags, connectWith } from '../connection.ts';
import { askAdminServer, askServer } from './tcp-server-report.ts';

/** What is known of one server. */
export interface ServerFacts {
  readonly name: string;
  /** Undefined if it gave no session; then `trouble` says why. */
  readonly session: SessionFacts | undefined;
  readonly trouble: string | undefined;
  /** What it says of itself, where it may be asked. */
  readonly version: string | undefined;
  readonly mode: string | undefined;
  readonly configuration: ServerConfiguration | undefined;
}

export interface SessionFacts {
  readonly connectMs: number;
  /** Of reads, one after another, in order of length. */
  readonly readMs: readonly number[];
  readonly timeoutMs: number;
  readonly readOnly: boolean;
}

export interface ServerConfiguration {
  readonly tickMs: number;
  /** Undefined for one that stands alone. */
  readonly syncLimit: number | undefined;
}

const READ_COUNT = 20;
const ASK_TIMEOUT_MS = 2_000;

/** Connects to one server alone, and asks what it may be asked. */
export async function examineServer(
  {
    name,
    address,
    chroot,
  }: { readonly name: string; readonly address: ServerAddress | undefined; readonly chroot: string },
  {
    flags,
    timeoutMs,
    adminPort,
  }: { flags: ConnectionFlags; timeoutMs: number; adminPort: number | undefined },
): Promise<ServerFacts> {
  const only = address ? { ...flags, servers: `${name}${chroot}` } : flags;
  const asking = address && 'port' in address ? address : undefined;
  const [session, report, configuration, admin] = await Promise.all([
    sessionFacts(only, timeoutMs).catch((error: Error) => error),
    asking && askServer(asking, 'srvr', ASK_TIMEOUT_MS),
    asking && askServer(asking, 'conf', ASK_TIMEOUT_MS),
    asking && adminPort !== undefined && askAdminServer(asking.host, adminPort, ASK_TIMEOUT_MS),
  ]);
  return {
    name,
    session: session instanceof Error ? undefined : session,
    trouble: session instanceof Error ? session.message : undefined,
    version: /^Zookeeper version: ([^\s,-]+)/m.exec(report || '')?.[1],
    mode: /^Mode: (\w+)/m.exec(report || '')?.[1],
    configuration: configurationFrom(configuration || '') ?? configurationFrom(propertiesOf(admin || {})),
  };
}

async function sessionFacts(flags: ConnectionFlags, timeoutMs: number): Promise<SessionFacts> {
  const startedAtMs = systemClock.nowMs();
  await using holdfast = await connectWith(flags, { timeoutMs });
  const connectMs = systemClock.nowMs() - startedAtMs;
  const readMs: number[] = [];
  for (let count = 0; count < READ_COUNT; count++) {
    const sentAtMs = systemClock.nowMs();
    await holdfast.zk.exists('/', { timeoutMs });
    readMs.push(systemClock.nowMs() - sentAtMs);
  }
  const { timeoutMs: granted, readOnly } = holdfast.zk.session;
  return { connectMs, readMs: readMs.sort((a, b) => a - b), timeoutMs: granted, readOnly };
}

/** As `conf` writes it: `tickTime=2000`. */
export function configurationFrom(text: string): ServerConfiguration | undefined {
  const value = (key: string) => {
    const digits = new RegExp(`^${key}=(\\d+)$`, 'm').exec(text)?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
  const tickMs = value('tickTime');
  return tickMs === undefined ? undefined : { tickMs, syncLimit: value('syncLimit') };
}

/** As the AdminServer has it, `tick_time`, in the words of `conf`. */
function propertiesOf(answer: Readonly<Record<string, unknown>>): string {
  return `tickTime=${String(answer['tick_time'])}\nsyncLimit=${String(answer['sync_limit'])}`;
}
