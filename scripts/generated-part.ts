/** Puts what was printed into the place that a document has for it: between its two marks. */
export function withGeneratedPart(
  document: { readonly file: string; readonly text: string },
  name: string,
  printed: string,
): string {
  const pattern = new RegExp(`(<!-- generated: ${name} -->\n)[\\s\\S]*?(<!-- end: ${name} -->)`);
  if (!pattern.test(document.text)) throw new Error(`${document.file} has no place for ${name}`);
  return document.text.replace(
    pattern,
    (_all, begin: string, end: string) => `${begin}\n${printed}\n\n${end}`,
  );
}
