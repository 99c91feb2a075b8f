// Rules of the house that no linter knows. Each says what to do instead.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import ts from 'typescript';

const LINES_MAX = 650;
/** A list, with one row for each bug. */
const MUTANTS = 'simulation/mutants/mutant-list.ts';
const DOORS = [
  'src/holdfast.ts',
  'src/zookeeper.ts',
  'src/server.ts',
  'src/testing.ts',
  'src/opentelemetry.ts',
];

const files = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.mjs'],
  {
    encoding: 'utf8',
  },
)
  .split('\n')
  .filter((file) => file !== '');

const faults: string[] = [];
const fault = (file: string, message: string) => faults.push(`${file}: ${message}`);

for (const file of files) {
  const text = readFileSync(file, 'utf8');
  const name = basename(file).replace(/(\.test|\.test-data|\.config)?\.(ts|mjs)$/, '');
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) fault(file, 'name it in kebab-case');
  if (/^(utils?|helpers?|types|common|misc|index)$/.test(name))
    fault(file, 'name it after the one thing it does');
  const lineCount = text.split('\n').length;
  const source = /^(src|simulation)\//.test(file) && !/\.test(-data)?\.ts$/.test(file) && file !== MUTANTS;
  if (source && lineCount > LINES_MAX)
    fault(file, `${lineCount} lines, at most ${LINES_MAX}: which two things is it?`);
  const todo = /\b(TODO|FIXME|XXX)\b(?!\(#\d+\))/.exec(file === 'scripts/tidy.ts' ? '' : text);
  if (todo) fault(file, `${todo[1]} without an issue: write ${todo[1]}(#12)`);
  if (file.endsWith('.test.ts') && /\b(it|test|describe)\.(only|skip|todo|fails)\b/.test(text)) {
    fault(file, 'a test that does not run is not a test');
  }
}

// An option that is given as undefined is not given: spread behind a default, it hides that.
const HIDDEN_DEFAULT =
  /\{[^{}\n]*\b\w+: (?!_)[^{}\n]*, \.\.\.(?:options|given|tls|limits|lease|bounds)\b(?:\.\w+)? *[,}]/;
for (const file of files.filter((each) => /^(src|simulation)\/.*(?<!\.test)\.ts$/.test(each))) {
  const found = HIDDEN_DEFAULT.exec(readFileSync(file, 'utf8'));
  if (found) fault(file, `${found[0]}: spread givenOf(…) behind defaults`);
}

// Node looks through all listeners of a signal for each that is added or removed, and warns of a leak from eleven on.
for (const file of files.filter((each) =>
  /^src\/(?!cli\/|testing\/|base\/abort\.ts$).*(?<!\.test)\.ts$/.test(each),
)) {
  if (/addEventListener\(\s*'abort'/.test(readFileSync(file, 'utf8')))
    fault(
      file,
      'listen to a signal by onceAborted or ifAborted of src/base/abort.ts: waits share one listener',
    );
}

// A path that a document names is there.
const documents = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  encoding: 'utf8',
});
for (const document of documents.split('\n').filter((file) => file !== '')) {
  const text = readFileSync(document, 'utf8');
  for (const [, path] of text.matchAll(
    /`((?:src|simulation|test|scripts|bench|docs|examples)\/[\w./-]+)`/g,
  )) {
    if (!existsSync(path!)) fault(document, `names ${path}, which does not exist`);
  }
  for (const [, link] of text.matchAll(/\]\(([^)#:]+)\)/g)) {
    if (!existsSync(join(dirname(document), link!)))
      fault(document, `links to ${link}, which does not exist`);
  }
}

// `npm ci` refuses a lock file that lacks a package of any platform, and an address would bind it to one registry.
interface LockedPackage {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
const locked: Readonly<Record<string, LockedPackage>> = JSON.parse(
  readFileSync('package-lock.json', 'utf8'),
).packages;
for (const [path, { resolved, integrity, optionalDependencies = {} }] of Object.entries(locked)) {
  if (resolved)
    fault('package-lock.json', `${path} has an address: npm install --omit-lockfile-registry-resolved`);
  if (path !== '' && !integrity) fault('package-lock.json', `${path} has no integrity`);
  for (const name of Object.keys(optionalDependencies)) {
    if (locked[`${path}/node_modules/${name}`] || locked[`node_modules/${name}`]) continue;
    fault(
      'package-lock.json',
      `${name}, an optional package of ${path}, is missing: take a version that has it`,
    );
  }
}

// What users see is explained where it is declared.
const config = ts.getParsedCommandLineOfConfigFile(
  'tsconfig.json',
  {},
  { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
);
const program = ts.createProgram({ rootNames: DOORS, options: config!.options });
const checker = program.getTypeChecker();
for (const door of DOORS) {
  const symbol = checker.getSymbolAtLocation(program.getSourceFile(door)!);
  for (const exported of symbol ? checker.getExportsOfModule(symbol) : []) {
    const target = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    const declarations = target.declarations ?? [];
    const documented = target.getDocumentationComment(checker).length > 0;
    const own = declarations.filter((declaration) => declaration.getSourceFile().fileName.includes('/src/'));
    if (!documented && own.length > 0 && !ts.isEnumMember(own[0]!)) {
      fault(door, `${exported.name} is exported without a JSDoc sentence`);
    }
  }
}

for (const line of faults) console.error(`tidy: ${line}`);
if (faults.length > 0) process.exit(1);
