/** What `holdfast` itself ends with; everything else is the child's. Scripts depend on these: never renumber. */
export const EXIT = {
  done: 0,
  failed: 1,
  badUsage: 2,
  notExecutable: 126,
  noSuchCommand: 127,
  busy: 200,
  lost: 201,
  heldTooLong: 202,
  revoked: 203,
  unreachable: 204,
  refused: 205,
  wrongKind: 206,
} as const;

export type ExitCode = number;
