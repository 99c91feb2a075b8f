/** Every error code of ZooKeeper 3.5 to 3.9, as the word this code base uses for it. */
export const errorCodes = {
  'system-error': -1,
  'runtime-inconsistency': -2,
  'data-inconsistency': -3,
  'connection-loss': -4,
  'marshalling-error': -5,
  unimplemented: -6,
  'operation-timeout': -7,
  'bad-arguments': -8,
  'unknown-session': -12,
  'new-config-no-quorum': -13,
  'reconfig-in-progress': -14,
  'api-error': -100,
  'no-node': -101,
  'no-auth': -102,
  'bad-version': -103,
  'no-children-for-ephemerals': -108,
  'node-exists': -110,
  'not-empty': -111,
  'session-expired': -112,
  'invalid-callback': -113,
  'invalid-acl': -114,
  'auth-failed': -115,
  'session-moved': -118,
  'not-read-only': -119,
  'ephemeral-on-local-session': -120,
  'no-watcher': -121,
  'request-timeout': -122,
  'reconfig-disabled': -123,
  'session-closed-requires-sasl-auth': -124,
  'quota-exceeded': -125,
  'throttled-op': -127,
} as const;

/** What a server can say is wrong; `'unknown'` stands for numbers of versions yet to come. */
export type ServerCondition = keyof typeof errorCodes | 'unknown';

const conditions = new Map<number, ServerCondition>(
  Object.entries(errorCodes).map(([condition, code]) => [code, condition as ServerCondition]),
);

export function conditionOf(code: number): ServerCondition {
  return conditions.get(code) ?? 'unknown';
}

/** What a server says to a request of a session that it has ended. */
export function isSessionOver(code: number): boolean {
  return code === errorCodes['session-expired'] || code === errorCodes['unknown-session'];
}
