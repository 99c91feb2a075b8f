/** The door `holdfast/testing`: a test server with controls, a fault proxy, a virtual clock and locks in memory. */

export type { Cancel, Clock } from './base/clock.ts';
export { type Random, seededRandom } from './base/random.ts';
export { MemoryQueues, MemorySession } from './testing/memory-queue.ts';
export type {
  OrderedRefusal,
  RefusableOperation,
  RefusalRule,
  ServerControls,
  TestSession,
} from './testing/server-controls.ts';
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
export { VirtualClock } from './testing/virtual-clock.ts';
