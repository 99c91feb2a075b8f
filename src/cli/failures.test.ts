import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvariantError } from '../base/assert.ts';
import { LocalServerError } from '../local/local-server-error.ts';
import { ForeignNodeError, LockTimeoutError, lockErrorTable } from '../locks/lock-errors.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { errorTable, ServerError, UnreachableError } from '../protocol/errors.ts';
import { CommandError } from './command-error.ts';
import { EXIT } from './exit-codes.ts';
import { asCommandError, EXIT_BY_CONDITION, EXIT_BY_ERROR, failureJson } from './failures.ts';
import { jsonLine } from './json.ts';
import { failureText } from './report-failure.ts';
import { visibleText } from './terminal/visible-text.ts';

const PEOPLE = { json: false, debug: false };
const PROGRAMS = { json: true, debug: false };
const answered = (code: number) => new ServerError(code, 'create', '/locks/a');

/** As they stand in the sources, with something in each gap. */
function misuseMessages(): string[] {
  const src = fileURLToPath(new URL('..', import.meta.url));
  const files = ['client', 'locks', 'local'].flatMap((folder) =>
    readdirSync(join(src, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.includes('.test'))
      .map((file) => join(src, folder, file)),
  );
  return [...files, join(src, 'base/option-names.ts')].flatMap((file) => {
    const thrown = readFileSync(file, 'utf8').matchAll(
      /new (?:Type|Range)Error\(\s*([`'"])((?:\\.|(?!\1).)*)\1/gs,
    );
    return [...thrown].map(([, , text]) => {
      return text!.replace(/(?<= )\$\{[^}]*\}/g, '"given"').replace(/\$\{[^}]*\}/g, 'given');
    });
  });
}

describe('every failure has an exit code and one line', () => {
  test.each([...errorTable, ...lockErrorTable].filter(({ code }) => code !== 'ZK_<CONDITION>'))(
    '$name of docs/errors.md',
    ({ name }) => {
      expect(EXIT_BY_ERROR[name], `${name} is to be put into EXIT_BY_ERROR`).toBeTypeOf('number');
    },
  );

  test.each(Object.entries(errorCodes))('the server’s answer %s', (condition, code) => {
    const { exitCode } = asCommandError(answered(code));
    expect(exitCode).toBe(EXIT_BY_CONDITION[condition as keyof typeof errorCodes]);
    expect([EXIT.failed, EXIT.internal]).not.toContain(exitCode);
    expect(failureText(answered(code), PEOPLE)).toBe(
      `holdfast: create /locks/a: ${condition.replaceAll('-', ' ')}\n`,
    );
    expect(JSON.parse(failureText(answered(code), PROGRAMS))).toMatchObject({
      event: 'failed',
      exitCode,
      code: `ZK_${condition.toUpperCase().replaceAll('-', '_')}`,
    });
  });

  test('an answer of a version yet to come', () => {
    expect(asCommandError(answered(-9_999)).exitCode).toBe(EXIT.serverError);
  });

  test.each([
    [new TypeError("Cannot read properties of undefined (reading 'x')")],
    [new InvariantError('a queue has two heads')],
    [new AggregateError([], '')],
    ['a text that was thrown'],
    [undefined],
  ])('what nobody expected is an internal error, without a stack: %s', (error) => {
    expect(asCommandError(error).exitCode).toBe(EXIT.internal);
    expect(failureText(error, PEOPLE)).toMatch(
      /^holdfast: internal error: .*; HOLDFAST_DEBUG=1 shows where\n$/,
    );
  });

  test.each([
    'tls.ca: certificates in PEM are needed, not a path: no start line',
    'app, labels: 2148 bytes given, as JSON; at most 2048 are allowed',
    'batonFolder /locks/batons: it is inside /locks, where every node is a lock',
    'connect string "a b": server "a b"; host:port is needed',
    'name "a\\"b/c": it has a /',
    'steal and signal: only one of them can be meant',
  ])('misuse of the library is bad usage here: %s', (message) => {
    for (const error of [new TypeError(message), new RangeError(message)]) {
      expect(asCommandError(error)).toMatchObject({ exitCode: EXIT.badUsage, message });
    }
  });

  test('no misuse that the library throws is taken for a fault of ours', () => {
    const messages = misuseMessages();
    expect(messages.length).toBeGreaterThan(60);
    const unknown = messages.filter((message) => {
      return asCommandError(new TypeError(message)).exitCode !== EXIT.badUsage;
    });
    expect(unknown).toEqual([]);
  });

  test('where it was thrown is told on demand, each line harmless', () => {
    const cause = new Error('below\u001b[2J');
    const told = failureText(new InvariantError('above', { cause } as never), { json: false, debug: true });
    expect(told).toMatch(/^holdfast: .*\n/);
    expect(told.split('\n').length).toBeGreaterThan(3);
    expect(told).not.toContain('\u001b');
  });

  test('what the system refused is not called a fault of ours', () => {
    const error = Object.assign(new Error("EACCES: permission denied, open 'x'"), {
      code: 'EACCES',
      syscall: 'open',
    });
    expect(asCommandError(error)).toMatchObject({ exitCode: EXIT.failed, message: error.message });
  });
});

describe('servers out of reach', () => {
  const attempt = (text: string, code: string) =>
    new Error(text, { cause: Object.assign(new Error(), { code }) });
  const attempts = [
    attempt('zk1:2182: unable to verify the first certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
    attempt('zk2:2182: connect ECONNREFUSED', 'ECONNREFUSED'),
  ];
  const error = new UnreachableError(
    'no session with zk1:2182, zk2:2182 within 15000 ms; last: zk2:2182: connect ECONNREFUSED',
    {
      cause: new AggregateError(attempts),
    },
  );

  test('for a certificate that is not accepted say so, whichever server was tried last', () => {
    expect(failureText(error, PEOPLE)).toMatch(
      /; zk1:2182: unable to verify the first certificate; the server's certificate is not signed by an authority in HOLDFAST_TLS_CA\n$/,
    );
    expect(failureJson(asCommandError(error))).toMatchObject({
      exitCode: 211,
      code: 'ZK_UNREACHABLE',
      cause: {
        code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
        message: 'zk1:2182: unable to verify the first certificate',
      },
    });
  });
});

test.each([
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'the server does not speak TLS at this port'],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'the server did not accept HOLDFAST_TLS_CERT'],
])('%s says what to look at', (code, advice) => {
  const cause = Object.assign(new Error('handshake failed'), { code });
  const { exitCode, message } = asCommandError(new UnreachableError('no session', { cause }));
  expect({ exitCode, message }).toEqual({
    exitCode: 211,
    message: `no session; handshake failed; ${advice}`,
  });
});

describe('no text of others', () => {
  const hostile = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({
      unit: fc.constantFrom('a', '\n', '\u001b', '\u0085', '\u200b', '\u202e', '\u2066', '\ud800'),
    }),
  );

  test('leaves its one line, moves a cursor, turns the reading direction or hides in a failure', () => {
    const failures: ((text: string) => unknown)[] = [
      (text) => new ServerError(-101, 'get', `/${text}`),
      (text) => new ForeignNodeError('a', text),
      (text) => new LockTimeoutError(text, 5),
      (text) => new LocalServerError(text),
      (text) => new CommandError(text, EXIT.failed),
      (text) => new Error(text),
      (text) => new TypeError(`name ${JSON.stringify(text)}: it has a /`),
      (text) => new UnreachableError('no session', { cause: new AggregateError([new Error(text)]) }),
    ];
    fc.assert(
      fc.property(hostile, fc.constantFrom(...failures), fc.boolean(), (text, failure, json) => {
        const told = failureText(failure(text), { json, debug: false });
        const line = told.slice(0, -1);
        expect(told.endsWith('\n')).toBe(true);
        expect(visibleText(line)).toBe(line);
        if (json) expect(JSON.parse(told)).toMatchObject({ event: 'failed' });
      }),
    );
  });

  test('does so in JSON, whose texts are the same to programs', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const told = jsonLine({ text });
        expect(visibleText(told.slice(0, -1))).toBe(told.slice(0, -1));
        expect(JSON.parse(told)).toEqual({ text });
      }),
    );
  });
});
