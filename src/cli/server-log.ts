import { systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Console } from './console.ts';
import { jsonLine } from './json.ts';
import { oneLine } from './terminal/visible-text.ts';

/**
 * What `holdfast server` tells on standard error: a disk that fails always, everything with `verbose`. One line each,
 * with the time; with `json` one JSON object.
 */
export function serverLog(
  { stderr }: Pick<Console, 'stderr'>,
  { verbose, json }: { readonly verbose: boolean; readonly json: boolean },
): Log {
  return (level, message, fields = {}) => {
    if (!verbose && level !== 'warn' && level !== 'error') return;
    const time = new Date(systemClock.wallMs()).toISOString();
    if (json) return void stderr.write(jsonLine({ time, level, message, ...fields }));
    const facts = Object.entries(fields).map(([name, value]) => ` ${name}=${factText(value)}`);
    stderr.write(`${oneLine(`${time} ${level} ${message}${facts.join('')}`)}\n`);
  };
}

/** As it is where that can be told from the next fact. */
function factText(value: unknown): string {
  const text = value instanceof Error ? value.message : String(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}
