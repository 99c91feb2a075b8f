/** What a check came to. `skip`: it could not be looked at, and why stands in the detail. */
export type Verdict = 'ok' | 'warn' | 'fail' | 'skip';

/** The answer of one check to one question. */
export interface Finding {
  /** Which check: stable, for programs. */
  readonly check: string;
  readonly verdict: Verdict;
  /** What was seen. */
  readonly detail: string;
  /** What to do about it. */
  readonly advice?: string;
}

/** The worst of them. */
export function worstOf(findings: readonly Finding[]): Verdict {
  const has = (verdict: Verdict) => findings.some((finding) => finding.verdict === verdict);
  return has('fail') ? 'fail' : has('warn') ? 'warn' : 'ok';
}
