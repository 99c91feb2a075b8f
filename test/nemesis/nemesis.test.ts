import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tellViolation } from '../../simulation/checker/violation.ts';
import { judge } from './judge.ts';
import { reportPage } from './report.ts';
import { runNemesis } from './run-nemesis.ts';

const FAULTS_MS = 90_000;
const SEED = 1;
/** Some of the time goes by until the first fault, and between the last one and the end. */
const TIMEOUT_MS = 300_000;

describe('locks on a real ensemble where everything goes wrong', () => {
  test(
    'keep every promise',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'holdfast-nemesis-'));
      const lines: string[] = [];
      const log = (line: string) => lines.push(line);
      const result = await runNemesis({ durationMs: FAULTS_MS, seed: SEED, folder, log });
      const { verdict } = result;
      const story = () =>
        [...lines, ...verdict.violations.slice(0, 5).map((each) => tellViolation(each, verdict.events))].join(
          '\n',
        );
      // What happened depends on the machine: the least that says anything, per minute, is in judge.ts.
      expect(judge(result, { minutes: FAULTS_MS / 60_000 }), `${story()}\nhistories in ${folder}`).toEqual(
        [],
      );
      expect(reportPage(result, { seed: SEED, minutes: FAULTS_MS / 60_000 })).toContain('"pause-holders"');
      await rm(folder, { recursive: true });
    },
    TIMEOUT_MS,
  );
});
