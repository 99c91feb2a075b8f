import type { Command } from 'commander';
import { visibleJson } from './terminal/visible-text.ts';

/** Adds `--json`: one JSON value per line, for programs. */
export function withJson(command: Command): Command {
  return command.option('--json', 'for programs: one JSON value per line');
}

/** One line. What JSON has no number for, ids and tokens of 64 bits, is a string of decimal digits; an error is its text. */
export function jsonLine(value: unknown): string {
  return `${visibleJson(JSON.stringify(value, asText))}\n`;
}

function asText(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Error ? value.message : value;
}
