/** What would make two runs of one seed differ. */
const FORBIDDEN: readonly (readonly [owner: object, name: string])[] = [
  [Date, 'now'],
  [performance, 'now'],
  [Math, 'random'],
  [crypto, 'randomUUID'],
  [crypto, 'getRandomValues'],
  [process, 'hrtime'],
  ...['setTimeout', 'setInterval', 'setImmediate', 'fetch'].map((name) => [globalThis, name] as const),
];

/**
 * Runs something in which nobody may look at the machine's own time, timers or randomness: whoever does is told by an
 * exception where it happens. What is made here is put back, whatever comes of it.
 */
export function withoutOutsideWorld<T>(run: () => T): T {
  const before = FORBIDDEN.map(([owner, name]) => Object.getOwnPropertyDescriptor(owner, name));
  for (const [owner, name] of FORBIDDEN) {
    const value = () => {
      throw new Error(`${name} was called in a simulation: time and chance come from its seed`);
    };
    Object.defineProperty(owner, name, { value, configurable: true, writable: true });
  }
  try {
    return run();
  } finally {
    for (const [index, [owner, name]] of FORBIDDEN.entries()) {
      const descriptor = before[index];
      if (descriptor) Object.defineProperty(owner, name, descriptor);
      else Reflect.deleteProperty(owner, name);
    }
  }
}
