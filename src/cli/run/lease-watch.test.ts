import { describe, expect, test } from 'vitest';
import { Contact } from '../../session/contact.ts';
import { lossGraceMs } from './lease-watch.ts';

describe('the grace before a lease’s end', () => {
  test('is what was asked for, if the session is long enough', () => {
    expect(lossGraceMs(1_000, 15_000)).toBe(1_000);
    expect(lossGraceMs(10_000, 60_000)).toBe(10_000);
  });

  test.each([400, 1_000, 4_000, 15_000, 40_000, 120_000])(
    'is never entered by a lease whose renewal is late by one period: a session of %i ms',
    (timeoutMs) => {
      const contact = new Contact(timeoutMs, { clockRateTolerance: 0.01, touchLagMs: 1_000 });
      contact.answered(0, true);
      const renewedAtMs = 2 * contact.heartbeatPeriodMs; // The one before it got no answer.
      const graceMs = lossGraceMs(Number.POSITIVE_INFINITY, timeoutMs);
      expect(contact.leaseEndMs - renewedAtMs).toBeGreaterThanOrEqual(graceMs - 1e-6);
      expect(graceMs).toBeGreaterThan(timeoutMs / 10);
    },
  );
});
