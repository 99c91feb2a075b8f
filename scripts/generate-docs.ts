// Prints the parts of the documents that must not differ from the code, into the places marked for them.
// With --check, changes nothing and fails if a document is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { lockErrorTable } from '../src/locks/lock-errors.ts';
import { errorCodes } from '../src/protocol/error-codes.ts';
import { errorTable } from '../src/protocol/errors.ts';
import { linkTransitions, sessionTransitions } from '../src/session/session-state.ts';
import { withGeneratedPart } from './generated-part.ts';

interface Transition {
  readonly from: string;
  readonly to: string;
  readonly when: string;
}

const parts: Record<string, Record<string, () => string>> = {
  'docs/errors.md': { classes: errorClasses, conditions },
  'docs/architecture.md': {
    'session-states': () => diagram(sessionTransitions),
    'link-states': () => diagram(linkTransitions.filter(({ to }) => to !== 'gone')),
  },
};

const check = process.argv.includes('--check');
let stale = false;
for (const [file, sections] of Object.entries(parts)) {
  const before = readFileSync(file, 'utf8');
  let after = before;
  for (const [name, print] of Object.entries(sections)) {
    after = withGeneratedPart({ file, text: after }, name, print());
  }
  if (after === before) continue;
  stale = true;
  if (check) console.error(`docs: ${file} is stale; run npm run docs`);
  else writeFileSync(file, after);
}
if (check && stale) process.exit(1);

function errorClasses(): string {
  const rows = [...errorTable, ...lockErrorTable].map(
    ({ name, code, scope, outcome, advice }) =>
      `| \`${name}\` | \`${code}\` | ${scope} | ${outcome} | ${advice} |`,
  );
  return [
    '| Class | `code` | what is over | did it happen? | what to do |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function conditions(): string {
  const rows = Object.entries(errorCodes).map(
    ([condition, code]) =>
      `| \`${condition}\` | \`ZK_${condition.toUpperCase().replaceAll('-', '_')}\` | ${code} |`,
  );
  return ['| `condition` | `code` | on the wire |', '|---|---|---|', ...rows].join('\n');
}

function diagram(transitions: readonly Transition[]): string {
  const rows = transitions.map(({ from, to, when }) => `  ${from} --> ${to}: ${when.replaceAll(':', ',')}`);
  return ['```mermaid', 'stateDiagram-v2', ...rows, '```'].join('\n');
}
