import type { ContenderInfo } from '../locks/inspection.ts';
import { REVOKE_MARK } from '../queue/zookeeper-place.ts';
import { sessionText } from './lock-json.ts';

/** Who that is, in one line: `billing@web-3:4711`, or what else the node says, or at least its session. */
export function ownerText({
  owner,
  session,
  unreadable,
}: Pick<ContenderInfo, 'owner' | 'session' | 'unreadable'>): string {
  if (unreadable) return session === 0n ? 'not readable' : `session ${sessionText(session)}, not readable`;
  const { app, host, pid, text } = owner;
  if (app !== undefined || host !== undefined) {
    const place = [host, pid].filter((part) => part !== undefined).join(':');
    return [app, place].filter((part) => part !== undefined && part !== '').join('@');
  }
  if (text === REVOKE_MARK) return `session ${sessionText(session)}, asked to let go`;
  const said = text?.trim();
  return said ? said : `session ${sessionText(session)}`;
}
