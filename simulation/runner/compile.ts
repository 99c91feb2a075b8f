// Compiles src/ and the simulation to JavaScript, as the build does, with patches to the text of some files.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The top of the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A change to the text of one file. */
export interface Patch {
  /** What it is for, for whoever has to mend it. */
  readonly name: string;
  readonly file: string;
  /** Must be in the file exactly once. */
  readonly find: string;
  readonly replace: string;
}

const options: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
  rewriteRelativeImportExtensions: true,
};

/** What a simulated run consists of: the package, and the simulation without what starts and judges its runs. */
const FOLDERS = [
  'src',
  ...['checker', 'environment', 'scenario', 'world'].map((room) => `simulation/${room}`),
];

/** The sources of a simulated run, by path from the top. */
export function readSources(): Map<string, string> {
  const paths = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !/\.test(-data)?\.ts$/.test(path))
      .map((path) => `${folder}/${path}`),
  ).sort();
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

/**
 * Applies patches.
 *
 * @throws Error naming the patch whose text is not there, or there more than once: the code has moved on without it.
 */
export function patched(
  sources: ReadonlyMap<string, string>,
  patches: readonly Patch[],
): Map<string, string> {
  const result = new Map(sources);
  for (const { name, file, find, replace } of patches) {
    const text = result.get(file);
    if (text === undefined) throw new Error(`${name}: there is no ${file}`);
    const count = text.split(find).length - 1;
    if (count !== 1) throw new Error(`${name}: ${file} has this ${count} times, once is needed: ${find}`);
    result.set(
      file,
      text.replace(find, () => replace),
    );
  }
  return result;
}

const CACHE = join(root, '.cache/simulation');

/** Writes JavaScript of the sources into a folder, under their own paths. What was compiled before is not again. */
export function compile(sources: ReadonlyMap<string, string>, folder: string): void {
  const compiled = join(CACHE, 'compiled');
  mkdirSync(compiled, { recursive: true });
  for (const [path, text] of sources) {
    const target = join(folder, path.replace(/\.ts$/, '.js'));
    const cached = join(
      compiled,
      createHash('sha256').update(`${ts.version} ${path}\n${text}`).digest('hex'),
    );
    if (!existsSync(cached)) {
      const { outputText } = ts.transpileModule(text, { compilerOptions: options, fileName: path });
      writeFileSync(`${cached}.${process.pid}`, outputText);
      renameSync(`${cached}.${process.pid}`, cached); // Others may be compiling too.
    }
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(cached, target);
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n');
}

/** A folder for one compilation; whoever makes it removes it. */
export function makeFolder(): string {
  mkdirSync(CACHE, { recursive: true });
  return mkdtempSync(join(CACHE, 'run-'));
}
