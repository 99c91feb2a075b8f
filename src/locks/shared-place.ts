import type { Cancel } from '../base/clock.ts';
import { type Deferred, deferred } from '../base/deferred.ts';
import type { HoldOnPlace, PlaceEvents } from '../queue/lock-queue.ts';
import type { Grant } from './grant.ts';
import type { LockContext } from './lock-context.ts';
import type { SharingPolicy } from './mutex-options.ts';

const DONE = Promise.resolve();
/**
 * Tasks that take the lock again and again without anything to wait for would keep the event loop from turning, and
 * nobody would be heard: neither the server nor those who come. After so long, the next one waits for a turn.
 */
const DEAF_MS_MAX = 2;

/** Who decides what becomes of a shared place. */
export interface PlaceOwner {
  /** Nobody is in it, and what is said of it may be another than before. */
  changed(): void;
  /** A task has left it. Resolves when that is certain. `baton`: others have been seen by the task. */
  freed(options: { readonly baton: boolean }): Promise<void>;
}

/**
 * A place that is held, for one task of this process after the other. Each hold of a task is a *section* of it.
 *
 * Whether others are in the queue is known from one watch, which is set when it is first of interest: *unknown* until
 * that is answered, then *none* until somebody comes, then *some* for good. A place is passed on for ever while there are
 * none, and a limited number of times otherwise.
 *
 * What ends it for all tasks to come: its lease or its session is over, its node was removed, somebody asks for the lock,
 * or the connection was down for a moment, in which nobody could have been heard. The section that runs then goes on
 * for as long as its lease does.
 */
export class SharedPlace {
  readonly #context: LockContext;
  readonly #grant: Grant;
  readonly #policy: SharingPolicy;
  readonly #owner: PlaceOwner;
  #stopListening = () => {};
  #section: Section | undefined;
  #sectionCount = 0;
  #others: 'unknown' | 'none' | 'some' = 'unknown';
  #watching: Promise<void> | undefined;
  #watched = false;
  /** How often it was passed on while others waited, or might have. */
  #passCount = 0;
  /** Since when others wait, or might. */
  #othersSinceMs = 0;
  /** The lease can be promised to nobody any more. */
  #over = false;
  /** The running section is the last one. */
  #ending = false;
  /** It has been given up: what happens to it is of no interest any more. */
  #gone = false;
  /** Settles when the event loop has turned; there from the first grant of a turn on. */
  #turn: Deferred<void> | undefined;
  #turnSinceMs = 0;
  #turnAwaited = false;
  #idleSinceMs = 0;
  #cancelIdle: Cancel | undefined;

  constructor(context: LockContext, grant: Grant, policy: SharingPolicy, owner: PlaceOwner) {
    this.#context = context;
    this.#grant = grant;
    this.#policy = policy;
    this.#owner = owner;
  }

  /** Listens to what ends it; the owner may be told at once. */
  open(): void {
    this.#stopListening = this.#context.zk.on('suspended', () => this.#end(() => {}));
    this.#grant.hold.onEnded((cause) => {
      this.#over = true;
      this.#end((section) => section.end(cause));
    });
    this.#grant.attend({
      evicted: () => {
        this.#over = true;
        this.#end((section) => section.evict());
      },
      revoked: () => this.#end((section) => section.revoke()),
    });
  }

  /** The node's name. */
  get name(): string {
    return this.#grant.place!.entry.name;
  }
  get isEntered(): boolean {
    return this.#section !== undefined;
  }

  /** Whether it is of use to anyone from now on. By the clock and the session as they are now. */
  get #isGood(): boolean {
    if (this.#over || this.#ending || this.#grant.hold.remainingMs() <= 0) return false;
    const { session } = this.#grant.bound;
    return session === undefined || (session.state === 'connected' && !session.readOnly);
  }

  /** What the next task is to do while nobody is in it. `wait` for what `known` says. */
  next(): 'enter' | 'wait' | 'leave' {
    if (!this.#isGood) return 'leave';
    if (this.#sectionCount === 0) return 'enter';
    const nowMs = this.#context.clock.nowMs();
    if (this.#isDeaf(nowMs)) return 'wait';
    if (this.#others === 'none') return 'enter';
    const { grantsMax, passMs } = this.#policy;
    if (this.#passCount < grantsMax && nowMs - this.#othersSinceMs < passMs) return 'enter';
    return this.#others === 'unknown' ? 'wait' : 'leave';
  }

  /** Resolves when what the next task is to do may be known. The owner is told too. */
  known(): Promise<void> {
    return this.#turn && this.#isDeaf(this.#context.clock.nowMs()) ? this.#turn.promise : this.watch();
  }

  /** Whether it is kept although nobody here wants it. */
  get isKept(): boolean {
    return this.#policy.idleMs > 0 && this.#others !== 'some' && this.#isGood;
  }

  /** The next section. Only if `next` says so. */
  enter(): Grant {
    if (this.#sectionCount > 0 && this.#others !== 'none') this.#passCount++;
    const section = new Section(this.#grant, this.#sectionCount++, this.#watched, this.#left);
    this.#section = section;
    return section;
  }

  /** Begins to look out for others, if that is not done yet; resolves when it is known whether there are any. */
  watch(): Promise<void> {
    if (this.#watching !== undefined) return this.#watching;
    this.#othersSinceMs = this.#context.clock.nowMs();
    this.#watching = this.#grant
      .place!.watchForOthers(() => this.#met())
      .then(
        () => {
          this.#watched = true;
          if (this.#others !== 'unknown') return;
          this.#others = 'none';
          this.#passCount = 0;
          this.#changed();
        },
        () => this.#met(), // Whoever cannot look has to assume so.
      );
    return this.#watching;
  }

  /** Keeps it for whoever comes next. Resolves when nobody else can come unnoticed. */
  keep(): Promise<void> {
    const { clock } = this.#context;
    this.#idleSinceMs = clock.nowMs();
    // One timer at a time, which looks when it goes off: there may be a million sections before it does.
    this.#cancelIdle ??= clock.at(this.#idleSinceMs + this.#policy.idleMs, () => this.#idled());
    return this.#others === 'none' ? DONE : this.watch();
  }

  /** Gives the place up; whoever is in it does not hold any more. Where that was refused, tries once more. */
  leave({ baton = false }: { readonly baton?: boolean } = {}): Promise<void> {
    if (this.#gone) return this.#grant.leave({ baton: false });
    const announce = this.#context.lockDelayMs > 0;
    // One whose lease is over cannot say that it held until now.
    const held = !this.#over && this.#grant.hold.remainingMs() > 0;
    const crowded = this.#others === 'some' || (this.#others === 'unknown' && this.#grant.contended);
    this.#over = true;
    this.#gone = true;
    this.#cancelIdle?.();
    this.#stopListening();
    this.#grant.hold.release();
    // A guarded write of any section: on another connection the next holder's writes would overtake it.
    const byServer = this.#grant.openWriteCount > 0;
    const options = held
      ? { released: true, baton: baton || crowded || announce, announce, byServer }
      : { baton: false };
    return this.#grant.leave(options);
  }

  readonly #left = (section: Section, options: { readonly baton: boolean }): Promise<void> => {
    // A second time only if the first was refused: the node is there until it is removed.
    if (this.#section !== section) return this.#gone ? this.leave() : DONE;
    this.#section = undefined;
    return this.#owner.freed(options);
  };

  /** Others are in the queue. */
  #met(): void {
    if (this.#others === 'some') return;
    if (this.#others === 'none') this.#othersSinceMs = this.#context.clock.nowMs();
    this.#others = 'some';
    this.#changed();
  }

  #isDeaf(nowMs: number): boolean {
    if (this.#turn) {
      const deaf = nowMs - this.#turnSinceMs > DEAF_MS_MAX;
      this.#turnAwaited ||= deaf;
      return deaf;
    }
    this.#turn = deferred();
    this.#turnSinceMs = nowMs;
    this.#turnAwaited = false;
    this.#context.clock.afterInput(() => {
      this.#turn?.resolve();
      this.#turn = undefined;
      if (this.#turnAwaited) this.#changed();
    });
    return false;
  }

  #end(tell: (section: Section) => void): void {
    this.#ending = true;
    if (this.#section) tell(this.#section);
    else this.#changed();
  }

  #idled(): void {
    const { clock } = this.#context;
    this.#cancelIdle = undefined;
    if (this.#over || this.isEntered) return;
    const dueMs = this.#idleSinceMs + this.#policy.idleMs;
    if (clock.nowMs() < dueMs) {
      this.#cancelIdle = clock.at(dueMs, () => this.#idled());
      return;
    }
    this.#ending = true;
    this.#changed();
  }

  #changed(): void {
    if (!this.isEntered && !this.#gone) this.#owner.changed();
  }
}

type LeaveSection = (section: Section, options: { readonly baton: boolean }) => Promise<void>;

/** One task's hold of a shared place: what it is granted, and the lease of the place for as long as it is in. */
class Section implements Grant, HoldOnPlace {
  readonly section: number;
  readonly watched: boolean;
  contended = false;
  readonly #grant: Grant;
  readonly #leave: LeaveSection;
  #listener: ((error: Error) => void) | undefined;
  #events: PlaceEvents | undefined;
  #evicted = false;
  #revoked = false;
  #released = false;

  constructor(grant: Grant, section: number, watched: boolean, leave: LeaveSection) {
    this.#grant = grant;
    this.section = section;
    this.watched = watched;
    this.#leave = leave;
  }

  get token(): bigint {
    return this.#grant.token;
  }
  get paths(): readonly string[] {
    return this.#grant.paths;
  }
  get bound(): Grant['bound'] {
    return this.#grant.bound;
  }
  /** The place's: what one section has not heard of yet is still open when a later one leaves. */
  get openWriteCount(): number {
    return this.#grant.openWriteCount;
  }
  set openWriteCount(count: number) {
    this.#grant.openWriteCount = count;
  }
  /** Itself, as what keeps the promise. */
  get hold(): HoldOnPlace {
    return this;
  }

  onEnded(listener: (error: Error) => void): void {
    this.#listener = listener;
  }
  remainingMs(): number {
    return this.#released ? 0 : this.#grant.hold.remainingMs();
  }
  release(): void {
    this.#released = true;
    this.#listener = undefined;
  }

  attend(events: PlaceEvents): void {
    this.#events = events;
    if (this.#evicted) events.evicted();
    if (this.#revoked) events.revoked();
  }
  watchSelf(): Promise<boolean> {
    return this.#grant.watchSelf();
  }
  leave(options: { readonly baton: boolean }): Promise<void> {
    return this.#leave(this, options);
  }

  /** The lease of the place has ended. */
  end(cause: Error): void {
    this.#listener?.(cause);
  }
  evict(): void {
    this.#evicted = true;
    this.#events?.evicted();
  }
  revoke(): void {
    this.#revoked = true;
    this.#events?.revoked();
  }
}
