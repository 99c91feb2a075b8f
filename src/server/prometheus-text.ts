import type { Metric } from './server-metrics.ts';

/** The media type of the text format. */
export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Metrics in Prometheus' text format. */
export function prometheusText(metrics: readonly Metric[]): string {
  let text = '';
  for (const { name, help, type, samples } of metrics) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const { suffix = '', label, value } of samples) {
      text += `${name}${suffix}${label ? `{${label[0]}="${escaped(label[1])}"}` : ''} ${value}\n`;
    }
  }
  return text;
}

function escaped(labelValue: string): string {
  return labelValue.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
