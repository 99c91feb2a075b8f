/**
 * Modes of the mutex that a caller asks for: `holdfast.mutex(name, { cache: true })` keeps the lock while nobody else
 * wants it, `{ handOff: true }` passes it on among the tasks of one process. Their rows and scenarios are here; a mode
 * that the library does not have yet is off, since an option it does not know would be measured as a plain mutex.
 */
export const OPT_IN_MODES: { readonly cache: boolean; readonly handOff: boolean } = {
  cache: false,
  handOff: false,
};
