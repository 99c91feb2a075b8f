import { setMaxListeners } from 'node:events';
import { constants } from 'node:os';
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

  /** As a shell has it for what was ended by a signal. */
  get exitCode(): number {
    return 128 + constants.signals[this.signalName];
  }
}

/** Runs something with a signal that fires when the process is told to end, so that it can tidy up first. */
export async function untilSignalled<T>(
  run: (signal: AbortSignal, stop: () => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal); // Whatever goes on at once listens to it.
  const listeners = SIGNALS.map((name) => [name, () => controller.abort(new Signalled(name))] as const);
  for (const [name, listener] of listeners) process.on(name, listener);
  try {
    return await run(controller.signal, () => controller.abort(new Signalled('SIGINT')));
  } finally {
    for (const [name, listener] of listeners) process.off(name, listener);
  }
}
