/** Whether a lock's name is meant. */
export type NamePattern = (name: string) => boolean;

/** `member-*`, `job-?`: as a shell reads it, the whole name; every name if left out. */
export function namePattern(pattern: string | undefined): NamePattern {
  if (pattern === undefined) return () => true;
  const source = pattern.replaceAll(/[^*?]+|[*?]/g, (part) =>
    part === '*' ? '.*' : part === '?' ? '.' : part.replaceAll(/[\\^$.+()[\]{}|]/g, '\\$&'),
  );
  const expression = new RegExp(`^${source}$`, 'su');
  return (name) => expression.test(name);
}
