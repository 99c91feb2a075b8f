/**
 * What is wrong with a path, or undefined if nothing is. The rules are the server's (`PathUtils.validatePath`,
 * ZooKeeper 3.9): both sides check per UTF-16 code unit, which rules out every character beyond the BMP.
 */
export function pathFault(path: string): string | undefined {
  if (path === '') return 'it is empty';
  if (path === '/') return undefined;
  if (path.length > 1 && path.endsWith('/')) return 'it ends with /';
  return faultUpTo(path, path.length);
}

/** As `pathFault`, for a path that gets a number appended: it may end with /, or with dots. */
export function sequentialPathFault(path: string): string | undefined {
  return faultUpTo(path, path.length - 1);
}

/** What is wrong with the units of a path, and with its elements that end by this index. */
function faultUpTo(path: string, end: number): string | undefined {
  if (!path.startsWith('/')) return 'it does not begin with /';
  let elementStart = 1;
  for (let index = 1; index <= end; index++) {
    const unit = index === path.length ? 0x2f : path.charCodeAt(index);
    if (unit > 0x2f && unit < 0x7f) continue; // Nearly all there are.
    if (unit === 0x2f) {
      const length = index - elementStart;
      if (length === 0) return `it has an empty element at ${elementStart}`;
      // Only what is short enough to be one is looked at: this is asked of every path.
      if (length <= 2 && /^\.\.?$/.test(path.slice(elementStart, index)))
        return `it has the relative element ${path.slice(elementStart, index)}`;
      elementStart = index + 1;
    } else if (isForbiddenUnit(unit)) {
      return `it has the character U+${unit.toString(16).toUpperCase().padStart(4, '0')} at ${index}`;
    }
  }
  return undefined;
}

function isForbiddenUnit(unit: number): boolean {
  return (
    unit <= 0x1f ||
    (unit >= 0x7f && unit <= 0x9f) ||
    (unit >= 0xd800 && unit <= 0xf8ff) ||
    (unit >= 0xfff0 && unit <= 0xffff)
  );
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function joinPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}
