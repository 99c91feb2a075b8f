import { pathFault } from '../protocol/paths.ts';

/**
 * Refuses what cannot be a lock's name. It is one element of a path: a lock inside another lock's folder would be
 * taken for a contender.
 *
 * @throws TypeError
 */
export function checkName(name: string): void {
  if (typeof name !== 'string') throw new TypeError(`name: ${typeof name} given; a string is needed`);
  const fault = name === '' ? 'it is empty' : name.includes('/') ? 'it has a /' : pathFault(`/${name}`);
  if (fault) throw new TypeError(`name ${JSON.stringify(name)}: ${fault}`);
}
