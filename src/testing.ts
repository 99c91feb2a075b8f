/** The door `holdfast/testing`: a server under control, faults on demand and a clock that obeys, for tests of your own. */

export type { Cancel, Clock } from './base/clock.ts';
export { type Random, seededRandom } from './base/random.ts';
export { MalformedHistoryError } from './testing/attempts.ts';
export { checkHistory, type HistoryCounts, type Verdict } from './testing/checker.ts';
export {
  type Asked,
  type ClientEnded,
  decodeHistory,
  encodeEvent,
  type FaultBegan,
  type FaultEnded,
  type GaveUp,
  type Granted,
  type Healed,
  type History,
  type HistoryEvent,
  type HoldMode,
  type LockDeclared,
  type LockRecipe,
  type Looked,
  type Lost,
  type Queued,
  type RegisterEvent,
  type RegisterRead,
  type RegisterWriteBegan,
  type RegisterWriteEnded,
  type Released,
  type ReleaseStarted,
  type RemainingNode,
  type Remains,
  type RemovedByHand,
  type Revoked,
  type Stalled,
  type Wrote,
} from './testing/history.ts';
export { MemoryQueues, MemorySession } from './testing/memory-queue.ts';
export type {
  OrderedRefusal,
  RefusableOperation,
  RefusalRule,
  ServerControls,
  TestSession,
} from './testing/server-controls.ts';
export {
  type PlanOptions,
  planScenario,
  type Workload,
} from './testing/simulation/plan-scenario.ts';
export { type Outcome, runScenario } from './testing/simulation/run-scenario.ts';
export type { Scenario } from './testing/simulation/scenario.ts';
export { startTestServer, type TestServer } from './testing/start-test-server.ts';
export {
  type BytesFate,
  type BytesListener,
  type Cut,
  type Direction,
  type Endpoint,
  FaultProxy,
  type Faults,
} from './testing/tcp-fault-proxy.ts';
export { type CheckOptions, type Property, tellViolation, type Violation } from './testing/violation.ts';
export { VirtualClock } from './testing/virtual-clock.ts';
