/** Whether version `a` came after `b`, by the rules of semantic versions; one that cannot be read came before all. */
export function isNewer(a: string, b: string): boolean {
  const [left, right] = [parse(a), parse(b)];
  for (const index of [0, 1, 2] as const) {
    if (left.numbers[index] !== right.numbers[index]) return left.numbers[index] > right.numbers[index];
  }
  if (left.preview === '' || right.preview === '') return left.preview === '' && right.preview !== '';
  return left.preview.localeCompare(right.preview, 'en', { numeric: true }) > 0;
}

function parse(version: string): { numbers: [number, number, number]; preview: string } {
  const match = /^(\d+)\.(\d+)\.(\d+)(?:-([\w.-]+))?/.exec(version);
  if (!match) return { numbers: [-1, -1, -1], preview: '' };
  return { numbers: [Number(match[1]), Number(match[2]), Number(match[3])], preview: match[4] ?? '' };
}
