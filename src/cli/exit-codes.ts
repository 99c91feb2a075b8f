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
  heldByAncestor: 207,
  serverError: 208,
  output: 209,
  internal: 210,
  tls: 211,
  /** As a shell has it for a program whose reader has gone (`ls | head`): 128 + SIGPIPE. */
  brokenPipe: 141,
} as const;

export type ExitCode = number;
