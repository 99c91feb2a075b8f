import { inject } from 'vitest';

/** Where a server of the whole test run listens. */
export interface SharedServer {
  readonly host: string;
  readonly port: number;
  readonly connectString: string;
}

/** Where the three servers of the whole test run listen. */
export interface SharedEnsemble {
  /** All three. */
  readonly connectString: string;
  readonly servers: readonly SharedServer[];
}

declare module 'vitest' {
  interface ProvidedContext {
    sharedStandalone: SharedServer;
    sharedEnsemble: SharedEnsemble;
  }
}

/** What the super user of the shared servers authenticates with, in scheme digest. */
export const SUPER_USER_CREDENTIALS = 'super:admin';

/**
 * The standalone server that all tests share.
 *
 * A test keeps to nodes of its own and leaves the process alone; one that kills a server starts its own.
 */
export const sharedStandalone = (): SharedServer => inject('sharedStandalone');

/** The ensemble that all tests share; the same manners apply. */
export const sharedEnsemble = (): SharedEnsemble => inject('sharedEnsemble');
