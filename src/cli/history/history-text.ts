import type { AuditRecord } from '../../locks/audit-log.ts';
import { auditJson, contenderJson, sessionText } from '../lock-json.ts';
import { ownerText } from '../owner-text.ts';
import { ageText } from '../terminal/age-text.ts';
import { visibleText } from '../terminal/visible-text.ts';
import type { FollowEvent } from './hold-watch.ts';

/** What `--json` prints of a hold: one line each. */
export function eventJson(lock: string, event: FollowEvent): object {
  if (event.event === 'record') return recordJson(event.record);
  const at = event.at.toISOString();
  if (event.event === 'gap') return { event: 'gap', lock, at };
  if (event.event === 'back') return { event: 'back', lock, at, gapMs: Math.round(event.gapMs) };
  if (event.event === 'asked') {
    const { id, token, session, owner } = event.holder;
    return {
      event: 'asked',
      lockName: lock,
      at,
      holder: id,
      token: String(token),
      session: sessionText(session),
      owner,
    };
  }
  const holder = contenderJson(event.holder);
  if (event.event === 'holds') {
    return { event: 'holds', lock, at, fromStart: event.fromStart, waiting: event.waiting, holder };
  }
  return {
    event: 'ended',
    lock,
    at,
    ...(event.heldMs !== undefined && { heldMs: Math.round(event.heldMs) }),
    holder,
  };
}

export function recordJson(record: AuditRecord): object {
  const { action, ...rest } = auditJson(record) as { action: string };
  return { event: action, ...rest };
}

export function eventLine(event: FollowEvent): string {
  if (event.event === 'record') return recordLine(event.record);
  const at = event.at.toISOString();
  if (event.event === 'gap') return `${at}  gap       no server answers: what happens now is not seen`;
  if (event.event === 'back')
    return `${at}  back      after ${ageText(event.gapMs)} in which nothing was seen`;
  const who = ownerText(event.holder);
  if (event.event === 'asked') return visibleText(`${at}  asked     ${who}, without a reason`);
  const why = event.holder.owner.reason === undefined ? '' : `: ${event.holder.owner.reason}`;
  if (event.event === 'ended') {
    const after = event.heldMs === undefined ? '' : ` after ${ageText(event.heldMs)}`;
    return visibleText(`${at}  let go    ${who}${after}`);
  }
  const since = event.fromStart ? '' : ', since before this was looked at';
  const waiting = event.waiting > 0 ? `, ${event.waiting} waiting` : '';
  return visibleText(`${at}  holds     ${who}, token ${event.holder.token}${since}${waiting}${why}`);
}

export function recordLine(record: AuditRecord): string {
  const what = record.action === 'asked' ? 'asked     ' : 'taken     from ';
  return visibleText(
    `${record.at.toISOString()}  ${what}${ownerText(record)}, by ${record.by}: ${record.reason}`,
  );
}
