import type { TreeChange } from './data-tree.ts';

/** What is written to the log, and replayed after a restart: only what happened, never what was refused. */
export type Transaction = {
  readonly zxid: bigint;
  readonly timeMs: number;
} & (
  | { readonly kind: 'tree'; readonly changes: readonly TreeChange[] }
  | {
      readonly kind: 'open-session';
      readonly sessionId: bigint;
      readonly password: Buffer;
      readonly timeoutMs: number;
    }
  | { readonly kind: 'close-session'; readonly sessionId: bigint; readonly changes: readonly TreeChange[] }
);

/** Where transactions go before anyone may see their effect. */
export interface Journal {
  /** Takes a transaction on; `onDurable` of the core is called once it, and all before it, are on disk. */
  append(transaction: Transaction): void;
}
