import type { HoldfastOptions } from '../../locks/holdfast.ts';

/** What the stage tells a member's process. */
export type StageMessage =
  | {
      readonly kind: 'connect';
      readonly lockName: string;
      readonly options: Pick<
        HoldfastOptions,
        'servers' | 'auth' | 'root' | 'batonFolder' | 'app' | 'sessionTimeoutMs'
      >;
    }
  | { readonly kind: 'acquire' }
  | { readonly kind: 'release' }
  | { readonly kind: 'refused' };

/** What a member's process tells the stage. Tokens are texts: they are more than a double can tell apart. */
export type MemberMessage =
  | { readonly kind: 'connected'; readonly sessionTimeoutMs: number }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'held'; readonly token: string }
  | { readonly kind: 'write'; readonly token: string }
  | { readonly kind: 'released' }
  | { readonly kind: 'lost'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string };
