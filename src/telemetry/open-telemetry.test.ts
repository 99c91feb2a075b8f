import { channel } from 'node:diagnostics_channel';
import { DiagLogLevel, diag } from '@opentelemetry/api';
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
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, describe, expect, test } from 'vitest';
import type { AcquireMessage, HoldMessage } from '../locks/lock-diagnostics.ts';
import { LockLostError } from '../locks/lock-errors.ts';
import { enableOpenTelemetry } from './open-telemetry.ts';

const ignore = () => {};
const quietLogger = { debug: ignore, error: ignore, info: ignore, verbose: ignore, warn: ignore };
const uncaught: unknown[] = [];
const onUncaught = (error: unknown) => uncaught.push(error);
process.on('uncaughtException', onUncaught);
const reported: unknown[] = [];

afterEach(() => {
  diag.disable();
  reported.length = 0;
});

/** OpenTelemetry's SDK with everything in memory. */
function sdk(...processors: SpanProcessor[]) {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [...processors, new SimpleSpanProcessor(spans)],
  });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  /** The sum over all data points of one metric. */
  const totalOf = async (name: string) => {
    await reader.forceFlush();
    const all =
      exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? [];
    const points = all.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? [];
    return points.reduce((sum, { value }) => sum + (value as number), 0);
  };
  return { spans, tracerProvider, meterProvider, totalOf };
}

function publishAcquire(lockName: string): AcquireMessage {
  const message: AcquireMessage = { lockName, use: 'mutex', trying: false, ahead: 0, roundTrips: 1 };
  channel('holdfast:lock:acquire:start').publish(message);
  return message;
}

function publishGrant(lockName: string): HoldMessage {
  const message: HoldMessage = { lockName, use: 'mutex', token: 2n ** 60n };
  channel('holdfast:lock:grant').publish(message);
  return message;
}

/** What Node makes of a throwing subscriber: reported from the next tick on. */
async function uncaughtNow(): Promise<unknown[]> {
  await new Promise((resolve) => setImmediate(resolve));
  return uncaught.splice(0);
}

function failing(step: 'onStart' | 'onEnd'): SpanProcessor {
  const fail = () => {
    throw new Error(`${step} of a span processor`);
  };
  return {
    onStart: step === 'onStart' ? fail : () => {},
    onEnd: step === 'onEnd' ? fail : () => {},
    forceFlush: async () => {},
    shutdown: async () => {},
  };
}

describe('OpenTelemetry', () => {
  for (const step of ['onStart', 'onEnd'] as const) {
    test(`keeps its metrics right, and lets no exception out, where a span processor throws in ${step}`, async () => {
      diag.setLogger(
        { ...quietLogger, error: (_: string, error: unknown) => void reported.push(error) },
        { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
      );
      const { tracerProvider, meterProvider, totalOf } = sdk(failing(step));
      const disable = enableOpenTelemetry({ tracerProvider, meterProvider });
      const acquire = publishAcquire('a');
      const released = publishGrant('a');
      const lost = publishGrant('b');
      channel('holdfast:lock:acquire:wait').publish(acquire);
      channel('holdfast:lock:acquire:end').publish(Object.assign(acquire, { outcome: 'granted' }));
      channel('holdfast:lock:revoked').publish(released);
      expect(await totalOf('holdfast.lock.held')).toBe(2);
      channel('holdfast:lock:release').publish(released);
      expect(await totalOf('holdfast.lock.held')).toBe(1);
      channel('holdfast:lock:lost').publish(
        Object.assign(lost, { error: new LockLostError('b', 'its session has ended') }),
      );
      expect(await totalOf('holdfast.lock.held')).toBe(0);
      expect(await totalOf('holdfast.lock.losses')).toBe(1);
      disable();
      expect(await uncaughtNow()).toEqual([]);
      expect(reported).toHaveLength(3); // One for each span.
      expect(reported[0]).toMatchObject({ message: `${step} of a span processor` });
    });
  }

  test('lets no exception out where an instrument and the diagnostics logger throw', async () => {
    const fail = () => {
      throw new Error('no more memory for metrics');
    };
    diag.setLogger(
      { ...quietLogger, error: fail },
      { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
    );
    const { spans, tracerProvider } = sdk();
    const instrument = () => ({ add: fail, record: fail });
    const meter = { createHistogram: instrument, createCounter: instrument, createUpDownCounter: instrument };
    const disable = enableOpenTelemetry({
      tracerProvider,
      meterProvider: { getMeter: () => meter as never },
    });
    const acquire = publishAcquire('a');
    channel('holdfast:lock:acquire:end').publish(Object.assign(acquire, { outcome: 'granted' }));
    channel('holdfast:lock:release').publish(publishGrant('a'));
    publishGrant('b');
    disable();
    expect(await uncaughtNow()).toEqual([]);
    expect(spans.getFinishedSpans()).toHaveLength(3);
  });

  test('ends the open spans and clears the gauge of held locks when it is disabled', async () => {
    const { spans, tracerProvider, meterProvider, totalOf } = sdk();
    const disable = enableOpenTelemetry({ tracerProvider, meterProvider });
    const acquire = publishAcquire('a');
    const hold = publishGrant('b');
    expect(await totalOf('holdfast.lock.held')).toBe(1);
    disable();
    disable();
    expect(await totalOf('holdfast.lock.held')).toBe(0);
    expect(spans.getFinishedSpans().map(({ name, events }) => [name, events[0]?.name])).toEqual([
      ['holdfast.lock.acquire', 'telemetry disabled'],
      ['holdfast.lock.hold', 'telemetry disabled'],
    ]);
    channel('holdfast:lock:acquire:end').publish(acquire);
    channel('holdfast:lock:release').publish(hold);
    expect(await totalOf('holdfast.lock.held')).toBe(0);
    expect(spans.getFinishedSpans()).toHaveLength(2);
  });
});
