import type { Random } from '../../src/testing.ts';

/** Everything that is made to go wrong. */
export type FaultKind =
  | 'kill-worker'
  | 'pause-worker'
  | 'pause-holders'
  | 'kill-leader'
  | 'kill-follower'
  | 'pause-leader'
  | 'pause-follower'
  | 'isolate-follower'
  | 'isolate-leader'
  | 'rolling-restart'
  | 'reset-connections'
  | 'cut-replies'
  | 'slice-bytes'
  | 'one-way-loss'
  | 'slow-links'
  | 'slow-quorum'
  | 'delete-folders';

/** A fault to come. Whom it strikes is decided by the dice when its time has come. */
export interface PlannedFault {
  readonly kind: FaultKind;
  readonly holdMs: number;
  readonly dice: number;
}

interface Row {
  readonly kind: FaultKind;
  /** How often, among all. */
  readonly weight: number;
  /** How long, in session timeouts: from, to. */
  readonly sessions: readonly [number, number];
  /** Whether the ensemble may be without a majority: one such fault at a time. */
  readonly strikesServers: boolean;
}

const server = (kind: FaultKind, weight: number, from: number, to: number): Row => ({
  kind,
  weight,
  sessions: [from, to],
  strikesServers: true,
});
const client = (kind: FaultKind, weight: number, from: number, to: number): Row => ({
  ...server(kind, weight, from, to),
  strikesServers: false,
});

const ROWS: readonly Row[] = [
  client('kill-worker', 20, 0, 0.3),
  client('pause-worker', 8, 0.5, 3),
  client('pause-holders', 7, 2.5, 3),
  server('kill-leader', 15, 0.3, 1),
  server('kill-follower', 5, 0.3, 1),
  server('pause-leader', 8, 0.7, 2),
  server('pause-follower', 4, 0.7, 2),
  server('isolate-follower', 10, 1, 3),
  server('isolate-leader', 6, 0.7, 1.7),
  server('rolling-restart', 3, 0, 0),
  client('reset-connections', 5, 0, 0.5),
  client('cut-replies', 6, 0.3, 1),
  client('slice-bytes', 3, 0.5, 1),
  client('one-way-loss', 6, 1, 2),
  client('slow-links', 4, 0.5, 1),
  server('slow-quorum', 3, 0.5, 1),
  server('delete-folders', 4, 0, 0),
];
/** How often, of 100, somebody's process or network is struck while something else goes wrong. */
const COMPANY_PERCENT = 30;

/**
 * The course of a run, from its seed: what goes wrong next, one thing or two at once. Two faults of servers never
 * coincide. The first strikes those who hold, for longer than their sessions last: the controls depend on it.
 */
export function* faultPlan(random: Random, sessionTimeoutMs: number): Generator<readonly PlannedFault[]> {
  const planned = ({ kind, sessions: [from, to] }: Row): PlannedFault => {
    const part = (random.u32() % 1_000) / 1_000;
    return { kind, holdMs: Math.round((from + part * (to - from)) * sessionTimeoutMs), dice: random.u32() };
  };
  yield [planned(ROWS.find(({ kind }) => kind === 'pause-holders')!)];
  for (;;) {
    const first = pick(random, ROWS);
    const company = random.u32() % 100 < COMPANY_PERCENT;
    const rest = ROWS.filter(({ kind, strikesServers }) => !strikesServers && kind !== first.kind);
    yield company ? [planned(first), planned(pick(random, rest))] : [planned(first)];
  }
}

function pick(random: Random, rows: readonly Row[]): Row {
  let ticket = random.u32() % rows.reduce((sum, { weight }) => sum + weight, 0);
  for (const row of rows) {
    ticket -= row.weight;
    if (ticket < 0) return row;
  }
  throw new Error('no row has the ticket');
}
