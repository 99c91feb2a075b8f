/** The door `holdfast/opentelemetry`: spans and metrics of locks. Needs `@opentelemetry/api`. */
export { enableOpenTelemetry, type OpenTelemetryOptions } from './telemetry/open-telemetry.ts';
