/** The local server is not there and could not be started; the message says why. */
export class LocalServerError extends Error {
  override readonly name = 'LocalServerError';
  readonly code = 'HOLDFAST_LOCAL_SERVER';

  constructor(message: string, options?: ErrorOptions) {
    super(`local server: ${message}`, options);
  }
}
