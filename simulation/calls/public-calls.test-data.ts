import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url));

/**
 * Every call of the package that takes time, as the types say: functions that a door exports, and methods of every class
 * and interface that is exported or can be reached from what is, by properties and results. A call takes time if it
 * gives a promise or an async iterable. What the types call internal is left out, and so is what a user implements.
 */
export function publicCalls(doors: readonly string[]): string[] {
  const files = doors.map((door) => `${SOURCES}${door}.ts`);
  const program = ts.createProgram(files, {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: [],
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  });
  return new Surface(program.getTypeChecker()).calls(
    files.map((file) => program.getSourceFile(file)!),
    doors,
  );
}

class Surface {
  readonly #checker: ts.TypeChecker;
  readonly #calls = new Set<string>();
  readonly #visited = new Set<ts.Symbol>();

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker;
  }

  calls(files: readonly ts.SourceFile[], doors: readonly string[]): string[] {
    for (const [index, file] of files.entries()) {
      for (const exported of this.#checker.getExportsOfModule(this.#checker.getSymbolAtLocation(file)!)) {
        this.#export(exported, doors[index]!);
      }
    }
    return [...this.#calls].sort();
  }

  #export(exported: ts.Symbol, door: string): void {
    const isAlias = exported.flags & ts.SymbolFlags.Alias;
    const symbol = isAlias ? this.#checker.getAliasedSymbol(exported) : exported;
    if (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface)) {
      this.#visit(this.#checker.getDeclaredTypeOfSymbol(symbol));
    }
    if (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Value)) {
      const type = this.#checker.getTypeOfSymbol(symbol);
      this.#called(`${door}: ${exported.name}`, type);
      for (const member of type.getProperties()) this.#member(exported.name, member); // Static ones.
    }
  }

  #visit(type: ts.Type): void {
    if (type.isUnionOrIntersection()) for (const each of type.types) this.#visit(each);
    const symbol = type.getSymbol();
    for (const argument of this.#checker.getTypeArguments(type as ts.TypeReference)) this.#visit(argument);
    if (!symbol || this.#visited.has(symbol) || !isOurs(symbol) || isImplementedByUsers(symbol)) return;
    this.#visited.add(symbol);
    if (isAbstract(symbol)) return; // Its calls are those of the classes that extend it.
    for (const member of type.getProperties()) this.#member(symbol.name, member);
  }

  #member(owner: string, member: ts.Symbol): void {
    if (!isPublic(member) || member.name.startsWith('__@')) return;
    const type = this.#checker.getTypeOfSymbol(member);
    this.#called(`${owner}.${member.name}`, type);
    if (type.getCallSignatures().length === 0) this.#visit(type);
  }

  #called(name: string, type: ts.Type): void {
    for (const signature of type.getCallSignatures()) {
      const result = signature.getReturnType();
      if (takesTime(result)) this.#calls.add(name);
      this.#visit(result);
    }
  }
}

function takesTime(result: ts.Type): boolean {
  const types = result.isUnion() ? result.types : [result];
  return types.some((type) => /^(Promise|Async\w+)$/.test(type.getSymbol()?.name ?? ''));
}

function isOurs(symbol: ts.Symbol): boolean {
  return (symbol.declarations ?? []).some(
    (declaration) => !relative(SOURCES, declaration.getSourceFile().fileName).startsWith('..'),
  );
}

function isAbstract({ valueDeclaration }: ts.Symbol): boolean {
  return (
    valueDeclaration !== undefined &&
    (ts.getCombinedModifierFlags(valueDeclaration) & ts.ModifierFlags.Abstract) !== 0
  );
}

/** What a program may give the client in place of its own, and the errors. */
const IMPLEMENTED_BY_USERS = new Set(['Transport', 'Clock', 'Random', 'LockStore']);

function isImplementedByUsers(symbol: ts.Symbol): boolean {
  return IMPLEMENTED_BY_USERS.has(symbol.name) || symbol.name.endsWith('Error');
}

function isPublic(member: ts.Symbol): boolean {
  if (member.name.startsWith('#')) return false;
  return (member.declarations ?? []).every((declaration) => {
    const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
    const isHidden = (ts.getCombinedModifierFlags(declaration as ts.Declaration) & hidden) !== 0;
    const isInternal = ts.getJSDocTags(declaration).some((tag) => tag.tagName.text === 'internal');
    return !isHidden && !isInternal;
  });
}
