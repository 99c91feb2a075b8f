import { expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { type KeptHold, keepHold } from './min-hold.ts';
import { SignalInbox } from './signal-inbox.ts';

/** An inbox that is given signals without a process that gets them. */
class FakeInbox extends SignalInbox {
  give: (signal: NodeJS.Signals) => void = () => {};

  override deliverTo(receive: (signal: NodeJS.Signals) => void): void {
    this.give = receive;
  }
}

function kept(remainingMs: () => number = () => 10_000) {
  const [loss, revocation] = [new AbortController(), new AbortController()];
  let ending = () => {};
  const hold: KeptHold = {
    lease: { signal: loss.signal, revocation: revocation.signal, remainingMs },
    sessionTimeoutMs: 10_000,
    onEnding: (listener) => {
      ending = listener;
    },
  };
  return {
    hold,
    lose: () => loss.abort(),
    ask: () => revocation.abort(),
    endAbove: () => ending(),
  };
}
const inAnHour = () => systemClock.nowMs() + 3_600_000;

test('a hold that is kept ends with its time, and by the signals that ask a process to end', async () => {
  expect(await keepHold(kept().hold, systemClock.nowMs() + 5, new FakeInbox())).toBe('over');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
    const inbox = new FakeInbox();
    const ended = keepHold(kept().hold, inAnHour(), inbox);
    inbox.give(signal);
    expect(await ended).toBe('signalled');
  }
});

test('no other signal ends it', async () => {
  const inbox = new FakeInbox();
  const { hold, lose } = kept();
  const ended = keepHold(hold, inAnHour(), inbox);
  for (const signal of ['SIGWINCH', 'SIGCONT', 'SIGUSR1', 'SIGUSR2'] as const) inbox.give(signal);
  lose();
  expect(await ended).toBe('lost');
});

test('it ends with the lock: lost, asked for, at the end of the lease, with the run above, or before it began', async () => {
  const asked = kept();
  const ended = keepHold(asked.hold, inAnHour(), new FakeInbox());
  asked.ask();
  expect(await ended).toBe('revoked');
  expect(await keepHold(asked.hold, inAnHour(), new FakeInbox())).toBe('revoked');
  expect(await keepHold(kept(() => 0).hold, inAnHour(), new FakeInbox())).toBe('lost');
  const nested = kept();
  const above = keepHold(nested.hold, inAnHour(), new FakeInbox());
  nested.endAbove();
  expect(await above).toBe('lost');
});
