import type { ContenderInfo } from '../locks/inspection.ts';
import { REVOKE_MARK } from '../queue/own-node.ts';
import { sessionText } from './lock-json.ts';

/** The program: of `holdfast run` the command that it runs, which is what people know it by. */
export function programOf({ app, labels }: ContenderInfo['owner']): string | undefined {
  return (app === 'holdfast' && labels?.['command']) || app;
}

/** Why it holds or waits: the reason given, or what `holdfast run` runs. Of a command line only the program's name. */
export function whyText({ app, reason, labels }: ContenderInfo['owner']): string {
  return reason ?? (app === 'holdfast' ? (labels?.['command'] ?? '') : '');
}

/** Who that is, in one line: `billing@web-3:4711`, or what else the node says, or at least its session. */
export function ownerText({
  owner,
  session,
  unreadable,
}: Pick<ContenderInfo, 'owner' | 'session' | 'unreadable'>): string {
  if (unreadable) return session === 0n ? 'not readable' : `session ${sessionText(session)}, not readable`;
  const { host, pid, text } = owner;
  const app = programOf(owner);
  if (app !== undefined || host !== undefined) {
    const place = [host, pid].filter((part) => part !== undefined).join(':');
    return [app, place].filter((part) => part !== undefined && part !== '').join('@');
  }
  if (text === REVOKE_MARK) return `session ${sessionText(session)}, asked to let go`;
  const said = text?.trim();
  return said ? said : `session ${sessionText(session)}`;
}
