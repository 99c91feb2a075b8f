import type { ContenderInfo } from '../locks/inspection.ts';
import { sessionText } from './lock-json.ts';

/** Who that is, in one line: `billing@web-3:4711`, or what else the node says, or at least its session. */
export function ownerText({ owner, session }: Pick<ContenderInfo, 'owner' | 'session'>): string {
  const { app, host, pid, text } = owner;
  if (app !== undefined || host !== undefined) {
    const place = [host, pid].filter((part) => part !== undefined).join(':');
    return [app, place].filter((part) => part !== undefined && part !== '').join('@');
  }
  const said = text?.trim();
  return said ? said : `session ${sessionText(session)}`;
}
