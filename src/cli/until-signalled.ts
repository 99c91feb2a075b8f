import process from 'node:process';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What ended the invocation from outside. */
export class Signalled extends Error {
  override readonly name = 'Signalled';
  readonly signalName: (typeof SIGNALS)[number];

  constructor(signalName: (typeof SIGNALS)[number]) {
    super(`${signalName} received`);
    this.signalName = signalName;
  }
}

/** Runs something with a signal that fires when the process is told to end, so that it can tidy up first. */
export async function untilSignalled<T>(
  run: (signal: AbortSignal, stop: () => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const listeners = SIGNALS.map((name) => [name, () => controller.abort(new Signalled(name))] as const);
  for (const [name, listener] of listeners) process.on(name, listener);
  try {
    return await run(controller.signal, () => controller.abort(new Signalled('SIGINT')));
  } finally {
    for (const [name, listener] of listeners) process.off(name, listener);
  }
}
