/** How much a line of the log matters. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** What the library needs of a logger; pino's, console's and most others fit after one line of glue. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** The default: a library says nothing unless asked. */
export const silentLog: Log = () => {};
