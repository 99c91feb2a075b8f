import { orAbort, sleep } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import type { Crew } from './crew.ts';
import type { Member } from './member.ts';
import type { Narrator } from './narrator.ts';

const LOOK_EVERY_MS = 20;

/** How the queue moves while everybody lets go in turn. */
export async function showQueue(crew: Crew, narrator: Narrator): Promise<void> {
  await narrator.say(await crew.picture(), 'good');
  for (let turn = 1; turn <= 2; turn++) {
    const { holder, next, tookMs } = await crew.handOver((member) => member.tell({ kind: 'release' }));
    await narrator.say(
      `${holder.name} lets go, ${next.name} holds ${tookMs.toFixed(1)} ms later; nobody else was woken`,
    );
    await crew.lineUp([holder]);
    await narrator.say(await crew.picture(), 'good');
  }
}

/** What a holder that dies leaves behind: nothing, once its session is over. */
export async function killHolder(crew: Crew, narrator: Narrator): Promise<void> {
  const [holder] = await crew.queue();
  await narrator.say(
    `kill -9 ${holder!.pid}: ${holder!.name} holds the lock, and is gone without a word`,
    'bad',
  );
  const { next, tookMs } = await crew.handOver((member) => member.kill('SIGKILL'));
  await narrator.say(
    `its node went with its session (${crew.sessionTimeoutMs} ms); ${next.name} holds after ${Math.round(tookMs)} ms`,
  );
  await narrator.say(await crew.picture(), 'good');
}

/** What a lock cannot prevent and a fence does: a holder that sleeps through the end of its lease, and writes. */
export async function pauseHolder(crew: Crew, narrator: Narrator, signal: AbortSignal): Promise<void> {
  const [holder] = await crew.queue();
  await narrator.say(`${holder!.name} holds the lock, and writes under it every 50 ms`);
  await narrator.say(
    `kill -STOP ${holder!.pid}: ${holder!.name} is frozen, as in a long garbage collection`,
    'warning',
  );
  const { next, tookMs } = await crew.handOver((member) => member.kill('SIGSTOP'));
  await narrator.say(`its session ran out; ${next.name} holds after ${Math.round(tookMs)} ms, and writes`);
  await narrator.say(await crew.picture(), 'good');
  const lost = holder!.next('lost');
  lost.catch(() => {});
  holder!.kill('SIGCONT');
  await narrator.say(
    `kill -CONT ${holder!.pid}: ${holder!.name} wakes up, believes that it holds, and writes`,
    'warning',
  );
  const refusal = await refusalOf(crew, holder!, signal);
  await narrator.say(`refused by the fence: ${refusal}`, 'good');
  await narrator.say(`and ${holder!.name} is told by its own lease: ${(await lost).message}`);
}

async function refusalOf({ ledger }: Crew, member: Member, signal: AbortSignal): Promise<string> {
  for (;;) {
    const refusal = ledger.refusalOf(member);
    if (refusal) return refusal.message;
    await orAbort(sleep(systemClock, LOOK_EVERY_MS), signal);
  }
}
