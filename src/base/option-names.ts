/** The options of a type, by name. Complete by its type: an option that is left out here does not compile. */
export type OptionNames<Options extends object> = { readonly [Name in keyof Required<Options>]: true };

/**
 * Refuses what is no options object, and every option that does not exist. In plain JavaScript a misspelt option would
 * be ignored without a word: `acquire({ timeout: 100 })` would wait for ever.
 *
 * @throws TypeError that names the option, the one that was probably meant, and all that exist.
 */
export function checkOptionNames<Options extends object>(
  where: string,
  options: Options,
  names: OptionNames<Options>,
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(`${where}: ${describeGiven(options)} given; an object of options is needed`);
  }
  for (const name in options) {
    if (Object.hasOwn(names, name)) continue;
    throw new TypeError(
      `${where}: there is no option ${JSON.stringify(name)}${advice(name, Object.keys(names))}`,
    );
  }
}

/** The same names, and some that are neither refused nor shown to anyone: what one part of a program gives another. */
export function withInternalNames<Names extends object>(names: Names, internal: readonly string[]): Names {
  const all = { ...names };
  for (const name of internal) Object.defineProperty(all, name, { value: true });
  return all;
}

/** The options that are given: one whose value is `undefined` is as one that is left out, and hides no default. */
export function givenOf<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
}

function describeGiven(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'string' ? `the string ${JSON.stringify(value)}` : `a ${typeof value}`;
}

function advice(name: string, names: readonly string[]): string {
  const meant = names.find((each) => isProbablyMeant(name.toLowerCase(), each.toLowerCase()));
  const all = `options are ${names.join(', ')}`;
  return meant === undefined ? `; ${all}` : `, did you mean ${meant}? ${all}`;
}

/** Same letters in another case, a name without its unit, a singular, or one letter wrong, missing or too many. */
function isProbablyMeant(given: string, name: string): boolean {
  if (given === name) return true;
  if (given.length >= 4 && (name.startsWith(given) || given.startsWith(name))) return true;
  let from = 0;
  while (from < given.length && given[from] === name[from]) from++;
  const [restGiven, restName] = [given.slice(from), name.slice(from)];
  return (
    restGiven.slice(1) === restName.slice(1) ||
    restGiven.slice(1) === restName ||
    restGiven === restName.slice(1)
  );
}
