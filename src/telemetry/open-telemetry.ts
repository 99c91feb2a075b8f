import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  type Attributes,
  type MeterProvider,
  metrics,
  type Span,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import type { AcquireMessage, HoldMessage, LockChannels } from '../locks/lock-diagnostics.ts';

const SCOPE = 'holdfast';

/** Where spans and metrics go, and what they say. */
export interface OpenTelemetryOptions {
  /** The global one if left out. */
  readonly meterProvider?: MeterProvider;
  /** The global one if left out. */
  readonly tracerProvider?: TracerProvider;
  /** Whether metrics say which lock. Off if left out: names with ids in them make a series each. Spans always do. */
  readonly lockNames?: boolean;
}

/**
 * Makes spans and metrics of what all locks of this process do, until the function that is returned is called.
 *
 * ```ts
 * import { enableOpenTelemetry } from 'holdfast/opentelemetry';
 * const disable = enableOpenTelemetry();
 * ```
 *
 * Needs `@opentelemetry/api`. It listens to the channels of `node:diagnostics_channel`, as anyone may.
 */
export function enableOpenTelemetry(options: OpenTelemetryOptions = {}): () => void {
  const meter = (options.meterProvider ?? metrics.getMeterProvider()).getMeter(SCOPE);
  const tracer = (options.tracerProvider ?? trace.getTracerProvider()).getTracer(SCOPE);
  const waited = meter.createHistogram('holdfast.lock.acquire.duration', {
    unit: 's',
    description: 'How long it took until a lock was granted, was found taken, or was given up.',
  });
  const held = meter.createHistogram('holdfast.lock.hold.duration', {
    unit: 's',
    description: 'How long a lock was held.',
  });
  const ahead = meter.createHistogram('holdfast.lock.queue.length', {
    unit: '{contender}',
    description: 'How many were ahead of one who joined a queue.',
  });
  const roundTrips = meter.createHistogram('holdfast.lock.acquire.round_trips', {
    unit: '{round_trip}',
    description: 'Round trips one after another until a lock was granted.',
  });
  const losses = meter.createCounter('holdfast.lock.losses', {
    unit: '{loss}',
    description: 'Locks that were lost while they were held.',
  });
  const revocations = meter.createCounter('holdfast.lock.revocations', {
    unit: '{request}',
    description: 'Locks that were asked for while they were held.',
  });
  const holding = meter.createUpDownCounter('holdfast.lock.held', {
    unit: '{lock}',
    description: 'Locks that are held now.',
  });

  const acquires = new WeakMap<AcquireMessage, Span>();
  const holds = new WeakMap<HoldMessage, Span>();
  const labels = ({ use, lockName }: AcquireMessage | HoldMessage): Attributes => ({
    'holdfast.lock.use': use,
    ...(options.lockNames && { 'holdfast.lock.name': lockName }),
  });
  const details = (message: AcquireMessage | HoldMessage): Attributes => ({
    'holdfast.lock.use': message.use,
    'holdfast.lock.name': message.lockName,
    // Beyond 2^53: as text, or it would be another number.
    ...(message.token !== undefined && { 'holdfast.lock.token': String(message.token) }),
  });
  const endHold = (message: HoldMessage) => {
    const span = holds.get(message);
    if (span) holding.add(-1, labels(message)); // Its grant was seen, so it was counted.
    held.record((message.heldMs ?? 0) / 1_000, labels(message));
    if (message.error) failed(span, message.error);
    span?.end();
    holds.delete(message);
  };

  return listen({
    'holdfast:lock:acquire:start': (message) => {
      const attributes = { ...details(message), 'holdfast.lock.trying': message.trying };
      acquires.set(message, tracer.startSpan('holdfast.lock.acquire', { attributes }));
    },
    'holdfast:lock:acquire:wait': (message) => {
      acquires.get(message)?.addEvent('wait', { 'holdfast.lock.ahead': message.ahead });
    },
    'holdfast:lock:acquire:end': (message) => {
      const outcome = { ...labels(message), 'holdfast.lock.outcome': message.outcome ?? 'failed' };
      waited.record((message.durationMs ?? 0) / 1_000, outcome);
      if (message.outcome === 'granted') {
        ahead.record(message.ahead, labels(message));
        roundTrips.record(message.roundTrips, labels(message));
      }
      const span = acquires.get(message);
      span?.setAttributes({ ...details(message), 'holdfast.lock.outcome': outcome['holdfast.lock.outcome'] });
      if (message.outcome === 'failed') failed(span, message.error);
      span?.end();
      acquires.delete(message);
    },
    'holdfast:lock:grant': (message) => {
      holding.add(1, labels(message));
      holds.set(message, tracer.startSpan('holdfast.lock.hold', { attributes: details(message) }));
    },
    'holdfast:lock:revoked': (message) => {
      revocations.add(1, labels(message));
      holds.get(message)?.addEvent('revoked');
    },
    'holdfast:lock:release': endHold,
    'holdfast:lock:lost': (message) => {
      losses.add(1, labels(message));
      endHold(message);
    },
  });
}

function failed(span: Span | undefined, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code === 'string') span?.setAttribute('error.type', code);
  span?.setStatus({ code: SpanStatusCode.ERROR, message });
}

function listen(listeners: { readonly [Name in keyof LockChannels]: (message: LockChannels[Name]) => void }) {
  const entries = Object.entries(listeners) as [string, (message: unknown) => void][];
  for (const [name, listener] of entries) subscribe(name, listener);
  return () => {
    for (const [name, listener] of entries) unsubscribe(name, listener);
  };
}
