import { LocalServerError } from '../local/local-server-error.ts';
import { LockError } from '../locks/lock-errors.ts';
import type { ServerCondition } from '../protocol/error-codes.ts';
import { ServerError, ZkError } from '../protocol/errors.ts';
import { CommandError } from './command-error.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { oneLine } from './terminal/visible-text.ts';

/** By the name of its class; those of docs/errors.md all have to be here. */
export const EXIT_BY_ERROR: Readonly<Record<string, ExitCode>> = {
  ConnectionLossError: EXIT.unreachable,
  RequestTimeoutError: EXIT.unreachable,
  SessionLostError: EXIT.unreachable,
  LeaseEndedError: EXIT.lost,
  AuthFailedError: EXIT.refused,
  UnreachableError: EXIT.unreachable,
  ServerBehindError: EXIT.unreachable,
  QueueFullError: EXIT.unreachable,
  ClosedError: EXIT.internal,
  ProtocolError: EXIT.serverError,
  LocalServerError: EXIT.unreachable,
  LockTimeoutError: EXIT.busy,
  LockUnreachableError: EXIT.unreachable,
  LockLostError: EXIT.lost,
  LockRevokedError: EXIT.revoked,
  LockReleasedError: EXIT.internal,
  ContenderEvictedError: EXIT.revoked,
  LockUpgradeError: EXIT.busy,
  WrongKindError: EXIT.wrongKind,
  ForeignNodeError: EXIT.wrongKind,
  ForeignDataError: EXIT.wrongKind,
  NotHolderError: EXIT.failed,
  StaleTokenError: EXIT.failed,
};

/** What a server says that is neither a matter of access nor of reach is 208; a new condition must be put here. */
export const EXIT_BY_CONDITION: Readonly<Record<ServerCondition, ExitCode>> = {
  'system-error': EXIT.serverError,
  'runtime-inconsistency': EXIT.serverError,
  'data-inconsistency': EXIT.serverError,
  'connection-loss': EXIT.unreachable,
  'marshalling-error': EXIT.serverError,
  unimplemented: EXIT.serverError,
  'operation-timeout': EXIT.unreachable,
  'bad-arguments': EXIT.serverError,
  'unknown-session': EXIT.unreachable,
  'new-config-no-quorum': EXIT.serverError,
  'reconfig-in-progress': EXIT.serverError,
  'api-error': EXIT.serverError,
  'no-node': EXIT.serverError,
  'no-auth': EXIT.refused,
  'bad-version': EXIT.serverError,
  'no-children-for-ephemerals': EXIT.wrongKind,
  'node-exists': EXIT.serverError,
  'not-empty': EXIT.serverError,
  'session-expired': EXIT.unreachable,
  'invalid-callback': EXIT.serverError,
  'invalid-acl': EXIT.refused,
  'auth-failed': EXIT.refused,
  'session-moved': EXIT.unreachable,
  'not-read-only': EXIT.unreachable,
  'ephemeral-on-local-session': EXIT.serverError,
  'no-watcher': EXIT.serverError,
  'request-timeout': EXIT.unreachable,
  'reconfig-disabled': EXIT.serverError,
  'session-closed-requires-sasl-auth': EXIT.refused,
  'quota-exceeded': EXIT.serverError,
  'throttled-op': EXIT.serverError,
  unknown: EXIT.serverError,
};

/** The error as one line and an exit code. What no table knows is a fault of this program, and is called that. */
export function asCommandError(error: unknown): CommandError {
  if (error instanceof CommandError) return error;
  const exitCode = exitCodeOf(error);
  if (exitCode !== EXIT.internal) {
    const cause = causeOf(error);
    const message = (error as Error).message;
    const said = cause && !message.includes(cause.message) ? `${message}; ${cause.message}` : message;
    const isTls = exitCode === EXIT.unreachable && cause?.code !== undefined && TLS_CODE.test(cause.code);
    return isTls
      ? new CommandError(`${said}${tlsAdvice(cause.code!)}`, EXIT.tls, { cause: error })
      : new CommandError(said, exitCode, { cause: error });
  }
  const message = `internal error: ${describe(error)}; HOLDFAST_DEBUG=1 shows where`;
  return new CommandError(message, EXIT.internal, { cause: error });
}

/** What `--json` says of a failure, on standard error. */
export function failureJson({ exitCode, message, cause, facts }: CommandError): object {
  const code = codeOf(cause);
  const reason = causeOf(cause);
  return {
    event: 'failed',
    exitCode,
    ...(code !== undefined && { code }),
    message: oneLine(message),
    ...facts,
    ...(reason && { cause: reason }),
  };
}

/** What is behind an error: for servers out of reach why they were, a certificate that was not accepted first. */
function causeOf(error: unknown): { readonly code?: string; readonly message: string } | undefined {
  const cause = (error as { cause?: unknown } | undefined)?.cause;
  if (!(cause instanceof Error)) return undefined;
  if (cause instanceof ZkError) return causeOf(cause);
  const attempts = cause instanceof AggregateError ? cause.errors : [cause];
  const chosen: unknown = attempts.findLast(isTlsFault) ?? attempts.at(-1);
  if (!(chosen instanceof Error)) return undefined;
  const code = codeOf(chosen) ?? codeOf(chosen.cause);
  return { ...(code !== undefined && { code }), message: chosen.message };
}

/** Codes of OpenSSL's verification and of Node's TLS. */
const TLS_CODE =
  /^(UNABLE_TO_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|ERR_TLS_|ERR_SSL_|ERR_OSSL_)/;

/** Which setting decides it. */
function tlsAdvice(code: string): string {
  if (/^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA)/.test(code)) {
    return "; the server's certificate is not signed by an authority in HOLDFAST_TLS_CA";
  }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return '; the server does not speak TLS at this port';
  if (code.includes('ALERT')) return '; the server did not accept HOLDFAST_TLS_CERT';
  return '';
}

function isTlsFault(error: unknown): boolean {
  const code = codeOf(error) ?? codeOf((error as { cause?: unknown } | undefined)?.cause);
  return code !== undefined && TLS_CODE.test(code);
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof ServerError) return EXIT_BY_CONDITION[error.condition];
  if (error instanceof ZkError || error instanceof LockError || error instanceof LocalServerError) {
    return EXIT_BY_ERROR[error.name] ?? EXIT.internal;
  }
  // Misuse, which the library tells before anything happens: here it came from the command line.
  if (isMisuse(error)) return EXIT.badUsage;
  return isSystemError(error) ? EXIT.failed : EXIT.internal;
}

/** The subjects of a misuse, each a name with what was given perhaps, and a colon: `root /a: …`, `app, labels: …`. */
const SUBJECT = String.raw`(?:connect string|[\w.-]+)(?: (?:"(?:[^"\\]|\\.)*"|/\S*))?`;
const MISUSE = new RegExp(`^${SUBJECT}(?:(?:, | and )${SUBJECT})*: `, 's');

/**
 * What `arguments.ts` and its like throw begins with what was given; a TypeError of the engine does not. That each message
 * of the library does is checked by `failures.test.ts`.
 */
function isMisuse(error: unknown): boolean {
  return (
    (error instanceof TypeError || error instanceof RangeError) &&
    codeOf(error) === undefined &&
    MISUSE.test(error.message)
  );
}

/** What the operating system refused: its message names the file. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

/** What was thrown, and the innermost place of it: enough to report it by. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const place = /^\s+at (?:.*[(/])?([^/()]+:\d+):\d+\)?$/m.exec(error.stack ?? '')?.[1];
  return `${error.name}: ${error.message}${place === undefined ? '' : ` (${place})`}`;
}
