import type { CallOptions } from './call-options.ts';

/** A persistent watch; removing it twice does nothing. */
export interface Watch extends AsyncDisposable {
  remove(options?: CallOptions): Promise<void>;
}
