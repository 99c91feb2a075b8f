import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { describe, expect } from 'vitest';
import type { LockChannels } from '../../src/holdfast.ts';
import { enableOpenTelemetry } from '../../src/opentelemetry.ts';
import { onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

const NAMES = ['acquire:start', 'acquire:wait', 'acquire:end', 'grant', 'revoked', 'release', 'lost'].map(
  (name) => `holdfast:lock:${name}`,
) as (keyof LockChannels)[];

/** Everything that is published, as it was then. */
function record(): Disposable & { readonly told: string[]; readonly messages: unknown[] } {
  const told: string[] = [];
  const messages: unknown[] = [];
  const listener = (message: unknown, name: string | symbol) => {
    const { lockName, use, ahead, roundTrips, outcome } = message as Record<string, unknown>;
    const facts = [lockName, use, ahead && `ahead ${ahead}`, outcome && `${outcome} ${roundTrips}`];
    told.push(`${String(name).replace('holdfast:lock:', '')} ${facts.filter(Boolean).join(' ')}`);
    messages.push(message);
  };
  for (const name of NAMES) subscribe(name, listener);
  return {
    told,
    messages,
    [Symbol.dispose]: () => {
      for (const name of NAMES) unsubscribe(name, listener);
    },
  };
}

describe('the channels of node:diagnostics_channel', () => {
  onEveryLockBackend('tell of an acquire, a wait, a grant, a release', async (workspace) => {
    const [one, two] = await workspace.holdfasts(2);
    await workspace.admin.ensurePath('/holdfast/batons');
    await (await one!.mutex('m').acquire()).release();
    using recorded = record();
    const lease = await one!.mutex('m').acquire();
    expect(recorded.told.splice(0)).toEqual([
      'acquire:start m mutex',
      'grant m mutex',
      'acquire:end m mutex granted 1',
    ]);
    expect(await two!.mutex('m').tryAcquire()).toBeNull();
    expect(recorded.told.splice(0)).toEqual(['acquire:start m mutex', 'acquire:end m mutex busy 1']);
    const waiting = two!.mutex('m').acquire();
    await until('it waits', async () => (await workspace.watchedPaths()).length >= 3);
    await lease.release();
    const next = await waiting;
    // A holder that had seen nobody lets go without a baton: then its successor looks once more.
    expect(recorded.told.splice(0).map((line) => line.replace('granted 3', 'granted 2'))).toEqual([
      'acquire:start m mutex',
      'acquire:wait m mutex ahead 1',
      'release m mutex',
      'grant m mutex',
      'acquire:end m mutex ahead 1 granted 2',
    ]);
    await next.release();
    await expect(one!.mutex('m').acquire({ signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow(
      'no',
    );
    expect(recorded.told.at(-1)).toBe('acquire:end m mutex failed 0');
    expect(recorded.messages.at(-1)).toMatchObject({ error: expect.objectContaining({ message: 'no' }) });
    const released = recorded.messages.find((message) => 'heldMs' in (message as object));
    expect(released).toMatchObject({ lockName: 'm', token: lease.token, heldMs: expect.any(Number) });
  });

  onEveryLockBackend('tell of a request to let go, and of a loss', async (workspace) => {
    const { holdfast, expire } = await workspace.faulty();
    using recorded = record();
    const lease = await holdfast.mutex('m').acquire();
    await until('it is watched', async () => (await workspace.watchedPaths()).length === 1);
    await holdfast.revoke('m');
    await until('it is asked', () => recorded.told.includes('revoked m mutex'));
    await expire();
    await until('it is lost', () => recorded.told.includes('lost m mutex'));
    expect(recorded.messages.at(-1)).toMatchObject({ token: lease.token, error: { code: 'LOCK_LOST' } });
  });
});

describe('OpenTelemetry', () => {
  onEveryLockBackend(
    'has spans and metrics of what locks do, and nothing once it is disabled',
    async (workspace) => {
      const spans = new InMemorySpanExporter();
      const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
      const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
      const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
      const meterProvider = new MeterProvider({ readers: [reader] });
      const disable = enableOpenTelemetry({ tracerProvider, meterProvider, lockNames: true });
      const { holdfast, expire } = await workspace.faulty();
      const token = await holdfast.mutex('m').use(async (lease) => {
        expect(await holdfast.mutex('m').tryAcquire()).toBeNull();
        return lease.token;
      });
      await holdfast.mutex('lost').acquire();
      await expire();
      await until('it is lost', () => spans.getFinishedSpans().length === 5);
      disable();
      await (await holdfast.mutex('m').acquire()).release();

      const seen = spans
        .getFinishedSpans()
        .map(({ name, attributes, status }) => [
          name,
          attributes['holdfast.lock.name'],
          attributes['holdfast.lock.outcome'] ?? status.code,
        ]);
      expect(seen).toEqual([
        ['holdfast.lock.acquire', 'm', 'granted'],
        ['holdfast.lock.acquire', 'm', 'busy'],
        ['holdfast.lock.hold', 'm', 0],
        ['holdfast.lock.acquire', 'lost', 'granted'],
        ['holdfast.lock.hold', 'lost', 2],
      ]);
      expect(spans.getFinishedSpans()[2]!.attributes['holdfast.lock.token']).toBe(String(token));

      await meterProvider.forceFlush();
      const points = new Map(
        exporter
          .getMetrics()
          .at(-1)!
          .scopeMetrics.flatMap(({ metrics }) => metrics)
          .map(({ descriptor, dataPoints }) => [
            descriptor.name,
            dataPoints.reduce(
              (sum, { value }) =>
                sum + (typeof value === 'number' ? value : (value as { count: number }).count),
              0,
            ),
          ]),
      );
      expect(Object.fromEntries(points)).toEqual({
        'holdfast.lock.acquire.duration': 3,
        'holdfast.lock.acquire.round_trips': 2,
        'holdfast.lock.hold.duration': 2,
        'holdfast.lock.held': 0,
        'holdfast.lock.losses': 1,
        'holdfast.lock.queue.length': 2,
      });
      await Promise.all([meterProvider.shutdown(), tracerProvider.shutdown()]);
    },
  );
});
