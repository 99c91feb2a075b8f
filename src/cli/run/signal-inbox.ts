import { constants } from 'node:os';

/** What ends a wait, and goes on to a command that runs. */
export const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
/** What asks a process to end: the four that a terminal, a service manager or a person sends for that. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
const OTHERS = ['SIGTSTP', 'SIGCONT', 'SIGWINCH'] as const;

/** Gives the signals of this process to whoever is to have them now. */
export class SignalInbox {
  #receive: (signal: NodeJS.Signals) => void = () => {};
  #isOpen = false;

  /** From now on to the end of the process. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    for (const signal of [...PASSED_ON, ...OTHERS]) process.on(signal, (name) => this.#receive(name));
  }

  /** From now on, until somebody else is. */
  deliverTo(receive: (signal: NodeJS.Signals) => void): void {
    this.#receive = receive;
  }
}

/** A signal ended what was to be done: the exit code is that of a shell. */
export class SignalledError extends Error {
  override readonly name = 'SignalledError';
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
    this.signal = signal;
  }
}

/** Whether the signal asks a run to end that has no command to pass it on to any more. */
export function asksToEnd(signal: NodeJS.Signals): boolean {
  return ENDING.includes(signal);
}

export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
