import { describe, expect, test } from 'vitest';
import type { PlaceEvents } from '../queue/lock-queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { Grant } from './grant.ts';
import { LastingHolds } from './lasting-holds.ts';
import { LeaderElection, type Leadership } from './leader-election.ts';
import type { LockContext } from './lock-context.ts';

/** An election that is won at once, whose terms are ended by the test. */
class ScriptedElection extends LeaderElection {
  readonly logged: string[];
  readonly resigned: bigint[] = [];
  /** What releases reject with. */
  refusal: Error | undefined;
  /** Of the term of now. */
  place: PlaceEvents | undefined;
  #endHold: ((error: Error) => void) | undefined;
  #remainingMs = 0;
  #epoch = 0n;

  constructor() {
    const clock = new VirtualClock();
    const logged: string[] = [];
    const context = {
      ...{ zk: {}, clock, root: '/locks', owner: { host: 'h', pid: 1 }, store: {} },
      young: new LastingHolds(clock, 100),
      log: (_level: string, message: string) => void logged.push(message),
      listenerFailed: () => {},
    };
    super(context as unknown as LockContext, 'e');
    this.logged = logged;
  }

  lose(): void {
    this.#remainingMs = 0;
    this.#endHold?.(new Error('its session has ended'));
  }

  protected override async contend(_options: object, giveUp: AbortSignal | undefined): Promise<Grant> {
    giveUp?.throwIfAborted();
    const token = ++this.#epoch;
    this.#remainingMs = 1_000;
    return {
      token,
      hold: {
        onEnded: (listener) => {
          this.#endHold = listener;
        },
        remainingMs: () => this.#remainingMs,
        release: () => {},
      },
      paths: [`/locks/e/${token}`],
      bound: {},
      contended: false,
      openWriteCount: 0,
      attend: (events) => {
        this.place = events;
      },
      watchSelf: async () => false,
      leave: async () => {
        this.resigned.push(token);
        if (this.refusal) throw this.refusal;
      },
    };
  }
}

/** Leads until the third term, whose work stops it; the terms before that end as given. */
async function leadWith(
  endTerm: (election: ScriptedElection, leadership: Leadership, signal: AbortSignal) => Promise<unknown>,
) {
  const election = new ScriptedElection();
  const stop = new AbortController();
  const epochs: bigint[] = [];
  const outcome = await election
    .lead(
      async (leadership, signal) => {
        epochs.push(leadership.epoch);
        if (epochs.length === 3) stop.abort(new Error('enough'));
        else await endTerm(election, leadership, signal);
      },
      { signal: stop.signal },
    )
    .catch((error: Error) => error);
  return { outcome, epochs, election };
}

const THREE_TERMS = [1n, 2n, 3n];

describe('lead', () => {
  test.each([
    ['throws the reason of its signal', (_: Leadership, signal: AbortSignal) => signal.throwIfAborted()],
    [
      'throws an AbortError',
      () => {
        throw new DOMException('This operation was aborted', 'AbortError');
      },
    ],
    [
      'throws an error with the reason as its cause',
      (_: Leadership, signal: AbortSignal) => {
        throw new Error('the report was not written', { cause: new Error('x', { cause: signal.reason }) });
      },
    ],
    ['returns', () => {}],
  ])('goes on after somebody has asked for the leadership: the work %s', async (_how, end) => {
    const { outcome, epochs, election } = await leadWith(async ({ place }, leadership, signal) => {
      place!.revoked();
      expect(signal.aborted).toBe(true);
      end(leadership, signal);
    });
    expect(outcome.message).toBe('enough');
    expect(epochs).toEqual(THREE_TERMS);
    expect(election.resigned).toEqual(THREE_TERMS);
  });

  test('goes on when the leadership was asked for first, and then lost', async () => {
    const { outcome, epochs } = await leadWith(async (election, leadership) => {
      election.place!.revoked();
      election.lose();
      leadership.assertHeld();
    });
    expect([outcome.message, epochs]).toEqual(['enough', THREE_TERMS]);
  });

  test('goes on after a loss, whatever the work throws, and logs that', async () => {
    const { outcome, epochs, election } = await leadWith(async (each) => {
      each.lose();
      throw new RangeError('of something else');
    });
    expect([outcome.message, epochs]).toEqual(['enough', THREE_TERMS]);
    expect(election.logged).toEqual(
      Array(2).fill('the work of a leader failed after its leadership was lost'),
    );
  });

  test.each([false, true])('ends with an error of the work itself; asked for before: %s', async (asked) => {
    const { outcome, epochs, election } = await leadWith(async ({ place }) => {
      if (asked) place!.revoked();
      throw new RangeError('a bug');
    });
    expect([outcome.message, epochs, election.resigned]).toEqual(['a bug', [1n], [1n]]);
  });

  test('goes on when the release at the end of a term is refused, and rejects with the reason of its signal', async () => {
    const { outcome, epochs, election } = await leadWith(async (each) => {
      each.refusal = new Error('no auth');
    });
    expect([outcome.message, epochs]).toEqual(['enough', THREE_TERMS]);
    expect(election.logged).toEqual(
      Array(3).fill('the release at the end of a term was refused, and is repeated'),
    );
  });

  test('ends with the error of the work also when the release after it is refused', async () => {
    const { outcome, epochs } = await leadWith(async (each) => {
      each.refusal = new Error('no auth');
      throw new RangeError('a bug');
    });
    expect([outcome.message, epochs]).toEqual(['a bug', [1n]]);
  });
});
