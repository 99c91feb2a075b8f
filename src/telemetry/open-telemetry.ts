import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  type Attributes,
  diag,
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
 * Makes spans and metrics of what all locks of this process do, until the function that is returned is called: it ends
 * the spans that are open then and takes their locks out of the gauge. What the telemetry throws never reaches a lock.
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

  const acquires = new Map<AcquireMessage, Span | undefined>();
  const holds = new Map<HoldMessage, OpenHold>();
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
  /** Ends the span of a hold and takes the hold out of the gauge, if its grant was seen. */
  const closeHold = (message: HoldMessage, end: (span: Span) => void) => {
    const hold = holds.get(message);
    if (!hold) return;
    holds.delete(message);
    if (hold.isCounted) guarded(() => holding.add(-1, labels(message)));
    endSpan(hold.span, end);
  };
  const endHold = (message: HoldMessage) => {
    closeHold(message, (span) => {
      if (message.error) failed(span, message.error);
    });
    guarded(() => held.record((message.heldMs ?? 0) / 1_000, labels(message)));
  };

  const unlisten = listen({
    'holdfast:lock:acquire:start': (message) => {
      const attributes = { ...details(message), 'holdfast.lock.trying': message.trying };
      acquires.set(
        message,
        guarded(() => tracer.startSpan('holdfast.lock.acquire', { attributes })),
      );
    },
    'holdfast:lock:acquire:wait': (message) => {
      guarded(() => acquires.get(message)?.addEvent('wait', { 'holdfast.lock.ahead': message.ahead }));
    },
    'holdfast:lock:acquire:end': (message) => {
      const outcome = message.outcome ?? 'failed';
      const span = acquires.get(message);
      acquires.delete(message);
      guarded(() =>
        waited.record((message.durationMs ?? 0) / 1_000, {
          ...labels(message),
          'holdfast.lock.outcome': outcome,
        }),
      );
      if (outcome === 'granted') {
        guarded(() => ahead.record(message.ahead, labels(message)));
        guarded(() => roundTrips.record(message.roundTrips, labels(message)));
      }
      endSpan(span, (ending) => {
        ending.setAttributes({ ...details(message), 'holdfast.lock.outcome': outcome });
        if (outcome === 'failed') failed(ending, message.error);
      });
    },
    'holdfast:lock:grant': (message) => {
      const isCounted = guarded(() => {
        holding.add(1, labels(message));
        return true;
      });
      const span = guarded(() => tracer.startSpan('holdfast.lock.hold', { attributes: details(message) }));
      holds.set(message, { span, isCounted: isCounted ?? false });
    },
    'holdfast:lock:revoked': (message) => {
      guarded(() => revocations.add(1, labels(message)));
      guarded(() => holds.get(message)?.span?.addEvent('revoked'));
    },
    'holdfast:lock:release': endHold,
    'holdfast:lock:lost': (message) => {
      guarded(() => losses.add(1, labels(message)));
      endHold(message);
    },
  });

  return () => {
    unlisten();
    // What is open now would never be ended: its end is no longer listened to.
    const markDisabled = (span: Span) => span.addEvent('telemetry disabled');
    for (const span of acquires.values()) endSpan(span, markDisabled);
    acquires.clear();
    for (const message of [...holds.keys()]) closeHold(message, markDisabled);
  };
}

/** A hold whose grant was seen and whose end was not yet. */
interface OpenHold {
  readonly span: Span | undefined;
  /** Whether the gauge of held locks counts it. */
  readonly isCounted: boolean;
}

/**
 * Runs one call into OpenTelemetry. What a span processor, an exporter or an instrument throws is reported to
 * OpenTelemetry's own diagnostics: Node would make it an uncaught exception, in the middle of an acquire or a release.
 */
function guarded<T>(record: () => T): T | undefined {
  try {
    return record();
  } catch (error) {
    try {
      diag.error('holdfast: a span or a metric could not be recorded', error);
    } catch {
      // The program's diagnostics logger throws too: there is no other place to report it.
    }
    return undefined;
  }
}

/** Ends a span in any case, also where its last attributes could not be set. */
function endSpan(span: Span | undefined, describeEnd: (span: Span) => void): void {
  if (!span) return;
  guarded(() => describeEnd(span));
  guarded(() => span.end());
}

function failed(span: Span, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code === 'string') span.setAttribute('error.type', code);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

function listen(listeners: { readonly [Name in keyof LockChannels]: (message: LockChannels[Name]) => void }) {
  const entries = Object.entries(listeners) as [string, (message: unknown) => void][];
  for (const [name, listener] of entries) subscribe(name, listener);
  return () => {
    for (const [name, listener] of entries) unsubscribe(name, listener);
  };
}
