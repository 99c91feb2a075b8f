/** A bug of ours: a state the code says cannot be. Never caught, never retried. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Throws an `InvariantError` unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Marks a branch that the types have ruled out; reached only when a type lies. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable value: ${String(value)}`);
}
