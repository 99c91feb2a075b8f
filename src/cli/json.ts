import type { Command } from 'commander';
import { visibleJson } from './terminal/visible-text.ts';

/** Adds `--json`: one JSON value per line, for programs. */
export function withJson(command: Command): Command {
  return command.option('--json', 'for programs: one JSON value per line');
}

/** One line. What JSON has no number for, ids and tokens of 64 bits, is a string of decimal digits. */
export function jsonLine(value: unknown): string {
  const json = JSON.stringify(value, (_key, each) => (typeof each === 'bigint' ? each.toString() : each));
  return `${visibleJson(json)}\n`;
}
