// Points of the code that every run of the simulation must have come by: a green run that never got there says nothing.
// They are put into the text when it is compiled for the simulation, so that the code itself knows nothing of them.
import type { Patch } from './compile.ts';

/**
 * `code` is a piece of the file, there exactly once, and in ‹these› what is added to it: `@@` counts, and is true.
 */
interface Probe {
  readonly name: string;
  readonly file: string;
  readonly code: string;
}

const probe = (name: string, file: string, code: string): Probe => ({ name, file: `src/${file}`, code });
const simulatedProbe = (name: string, file: string, code: string): Probe => ({
  ...{ name, file: `simulation/${file}`, code },
});

export const probes: readonly Probe[] = [
  // Waiting for the turn
  probe(
    'turn: granted at once, alone',
    'locks/contention.ts',
    "if (turn.kind === 'granted') ‹{ if (view.entries.length === 1) @@; ›break;‹ }›",
  ),
  probe(
    'turn: granted at once or after a look',
    'locks/contention.ts',
    "if (turn.kind === 'granted'‹ && @@›)",
  ),
  probe(
    'turn: found itself removed',
    'locks/contention.ts',
    "if (turn.kind === 'evicted'‹ && @@›) throw evictedFrom(contest.lockName);",
  ),
  probe(
    'turn: waits',
    'locks/contention.ts',
    'contended = true;\n      ‹@@; ›contest.onWait?.(turn, place.entry.name);',
  ),
  probe(
    'turn: granted by a baton',
    'locks/contention.ts',
    "if (departure === 'released' && turn.baton && !place.evicted‹ && @@›) break;",
  ),
  probe(
    'turn: looks again after a departure',
    'locks/contention.ts',
    '‹@@; ›view = await place.view(signal);',
  ),
  probe(
    'contend: again in a new session',
    'locks/contention.ts',
    'signal?.throwIfAborted(); // The caller waits no more, and hears of that.‹\n      @@;›',
  ),
  probe(
    'try: busy by the first look',
    'locks/contention.ts',
    'if (!isFree(before.entries, rule)‹ && @@›) return undefined;',
  ),
  probe(
    'try: overtaken after joining',
    'locks/contention.ts',
    '‹@@; ›await orAbort(place.leave(), signal); // Goes on behind the call.\n  return undefined;',
  ),
  probe(
    'hold: given up while it was confirmed',
    'locks/contention.ts',
    '} catch (error) {\n    ‹@@; ›holding.then(',
  ),
  // The lease
  probe('lease: lost', 'locks/lock-lease.ts', "this.#end('lost');‹ @@;›"),
  probe('lease: removed by someone else', 'locks/lock-lease.ts', 'evicted(): void {\n    ‹@@; ›this.#lose('),
  probe(
    'lease: ended by its own clock or session',
    'locks/lock-lease.ts',
    'grant.hold.onEnded((cause) => ‹@@ && ›this.#lose(',
  ),
  probe(
    'lease: asked for by someone',
    'locks/lock-lease.ts',
    "if (this.#state !== 'held' || this.#revocation) return;‹ @@;›",
  ),
  probe('lease: watched for lasting long', 'locks/lock-lease.ts', 'lasted(): void {\n    ‹@@; ›this.#grant'),
  probe(
    'lease: re-entered and left',
    'locks/lock-lease.ts',
    'if (--this.#leaseCount > 0‹ && @@›) return Promise.resolve();',
  ),
  probe(
    'lease: its signal made after the loss',
    'locks/lock-lease.ts',
    '!controller.signal.aborted‹ && @@›)',
  ),
  probe(
    'guard: refused, the node being gone',
    'locks/lock-lease.ts',
    'if (error.index < checks.length‹ && @@›) {',
  ),
  probe('acquire: granted too late', 'locks/lock.ts', 'if (giveUp.isDue‹ && @@›) throw timedOut('),
  probe(
    'acquire: no server in time',
    'locks/lock.ts',
    '‹@@; ›return new LockUnreachableError(this.name, `no server to ask',
  ),
  probe(
    'acquire: re-entered',
    'locks/lock.ts',
    'if (options.within‹ && @@›) return Promise.resolve(this.#reenter(options.within));',
  ),
  probe(
    'try: again in a new session',
    'locks/lock.ts',
    '‹{ let attempts = 0; return ›rejoinOnSessionLoss(giveUp, () => ‹(attempts++ > 0 && @@, ›this.tryContend(trace ? { ...options, trace } : options, giveUp)‹)›)‹; }›',
  ),
  // The queue
  probe(
    'gate: waits for a connection',
    'queue/connection-gate.ts',
    'while (!this.isOpen‹ && @@›) await this.#wait(signal);',
  ),
  probe(
    'gate: given up before it opened',
    'queue/connection-gate.ts',
    'const stopListening = ifAborted(signal, () => {\n‹        @@;\n›',
  ),
  probe(
    'join: taken back before it was sent',
    'queue/batched-writes.ts',
    'if (!creation.isWaiting) return;‹\n    @@;›',
  ),
  probe(
    'join: alone by its number',
    'queue/join-attempt.ts',
    'if (guess && queue.lone.isRight(guess, place.entry)‹ && @@›) {',
  ),
  probe(
    'join: somebody was in between',
    'queue/lone-joins.ts',
    'if (‹(made.sequence !== sequence && watch.isSet && @@) || ›made.sequence !== sequence',
  ),
  probe(
    'join: in another folder of that name',
    'queue/lone-joins.ts',
    '|| !watch.isSet) {‹\n      if (!watch.isSet) @@;›',
  ),
  probe(
    'folder watch: taken away, being idle',
    'queue/folder-watches.ts',
    'if (!watch.takeUsed()‹ && @@›) this.#takeAway(watch);',
  ),
  probe(
    'join: the folder is missing',
    'queue/join-attempt.ts',
    "if (isServerError(error, 'no-node')‹ && @@›) return this.#missFolders(error, folders);",
  ),
  probe('join: the answer was lost', 'queue/join-attempt.ts', '‹@@; ›return untilWritable('),
  probe(
    'join: found by its id',
    'queue/join-attempt.ts',
    'if (mine.length === this.#prefixes.length‹ && @@›) return inQueueOrder(',
  ),
  probe(
    'join: not found, made again',
    'queue/join-attempt.ts',
    '‹@@; ›await Promise.all(\n          paths.map((path) => deleteForSure(',
  ),
  probe(
    'join: given up on the way',
    'queue/join-attempt.ts',
    '‹@@; ›if (this.#creation) this.#shared.writes.withdraw(',
  ),
  probe(
    'queue: entries that their numbers cannot order',
    'queue/zookeeper-queue.ts',
    '‹@@; ›const looks = await Promise.all(',
  ),
  probe(
    'queue: no folder is an empty queue',
    'queue/zookeeper-queue.ts',
    "if (isServerError(error, 'no-node')‹ && @@›) return EMPTY;",
  ),
  // The place
  probe(
    'place: told of a departure',
    'queue/predecessor-watch.ts',
    "else if (type !== 'session-lost'‹ && @@›) this.#listener.resolve('gone');",
  ),
  probe('place: told of a baton', 'queue/predecessor-watch.ts', '‹@@; ›this.#hasStrayed = !this.#isSet;'),
  probe('place: told by a neighbour', 'queue/zookeeper-place.ts', '‹@@; ›succession.begin();'),
  probe(
    'place: a neighbour gave up',
    'queue/zookeeper-place.ts',
    "if (departure !== 'released'‹ && @@›) return watch();",
  ),
  probe(
    'place: passes the baton',
    'queue/zookeeper-place.ts',
    '#makeBaton(): MultiWrite<unknown>[] {‹\n    @@;›',
  ),
  probe(
    'place: a neighbour that was told had been removed',
    'queue/pass-on.ts',
    'if (isGone‹ && @@›) holder.evict();',
  ),
  probe(
    'neighbours: who was told has told another before the server heard of it',
    'queue/neighbours.ts',
    'follower.heirs() !== undefined)) {‹\n    @@;›',
  ),
  probe(
    'place: the folder of batons is missing',
    'queue/zookeeper-place.ts',
    '#makeBatonFolder(): void {‹\n    @@;›',
  ),
  probe('place: removed by someone else', 'queue/own-node.ts', '‹@@; ›this.#isEvicted = true;'),
  probe('place: a mark was read and taken away', 'queue/own-node.ts', '‹@@; ›store.zk.set(path, written,'),
  probe('place: a reader beside the writer', 'queue/zookeeper-place.ts', 'this.#accompanied = true;‹ @@;›'),
  probe(
    'place: a hold had to be confirmed',
    'queue/zookeeper-place.ts',
    'hold.release();\n    ‹@@; ›return undefined;',
  ),
  probe(
    'place: left when the session was over',
    'queue/zookeeper-place.ts',
    'if (this.lost.aborted‹ && @@›) return Promise.resolve();',
  ),
  probe(
    'writes: repeated after a lost answer',
    'queue/settled-writes.ts',
    'if (!isInterrupted(error)) throw error;‹\n      @@;›\n    }\n  }\n}\n\n/**\n * Asks again while',
  ),
  probe(
    'writes: the server took none',
    'queue/settled-writes.ts',
    'if (!isRefusedForNow(error)) throw error;‹ @@;›',
  ),
  probe(
    'writes: a shared name was looked at first',
    'queue/settled-writes.ts',
    'if (madeBy && mayBeAnother‹ && @@› && (',
  ),
  // Recipes
  probe('semaphore: waits for permits', 'locks/semaphore.ts', '‹@@; ›await joined.place.awaitView('),
  probe(
    'semaphore: again in a new session',
    'locks/semaphore.ts',
    '‹let attempts = 0; ›return rejoinOnSessionLoss(giveUp, () => ‹(attempts++ > 0 && @@, ›this.#contendOnce(options, giveUp)‹)›);',
  ),
  probe(
    'multi-lock: one of several failed',
    'locks/multi-lock.ts',
    '‹@@; ›for (const turn of turns) turn.then(',
  ),
  probe(
    'multi-lock: again in a new session',
    'locks/multi-lock.ts',
    '‹let attempts = 0; ›return rejoinOnSessionLoss(giveUp, async () => {‹ if (attempts++ > 0) @@;›',
  ),
  probe(
    'simple lock: somebody else has it',
    'locks/simple-lock.ts',
    "} else if (isServerError(error, 'node-exists')‹ && @@›) {",
  ),
  probe('simple lock: found by its id', 'locks/simple-lock.ts', 'if (mine‹ && @@›) return mine;'),
  probe(
    'election: nobody leads',
    'locks/leader-election.ts',
    'async #watchForFirst(onChange: (event: WatchEvent) => void): Promise<(() => void) | undefined> {‹\n    @@;›',
  ),
  probe(
    'read-write lock: downgraded',
    'locks/read-write-lock.ts',
    '‹@@; ›place = await writer.grant.beside!(',
  ),
  probe(
    'read-write lock: nobody can stand beside',
    'locks/read-write-lock.ts',
    '? undefined : ‹@@ && ›this.makeLease(within.holding);',
  ),
  // What goes wrong
  simulatedProbe(
    'follower: reads what its leader has left behind',
    'environment/follower.ts',
    'const [operation, read] = answer;‹\n    if (zxid < this.#leader.zxid) @@;›',
  ),
  simulatedProbe(
    'close: a wait ended with its client',
    'world/steps.ts',
    'if (error instanceof ClosedError && this.#closed.has(holdfast)‹ && @@›)',
  ),
  simulatedProbe(
    'remove: right after a hand-over',
    'world/world.ts',
    '‹@@; ›for (const run of this.#atHandOver.get(lock) ?? [])',
  ),
  simulatedProbe(
    'abort: when the session was lost',
    'world/steps.ts',
    'const onLoss = () => ‹@@ && ›void afterReactions(',
  ),
  // The session
  probe(
    'session: leases ended',
    'session/session-machine.ts',
    "‹@@; ›this.#effects.push({ kind: 'leases-ended'",
  ),
];

/** What puts the probes into the sources. */
export function probePatches(): Patch[] {
  return probes.map(({ name, file, code }) => ({
    name: `probe "${name}"`,
    file,
    find: code.replace(/‹[^›]*›/g, ''),
    replace: code.replace(/[‹›]/g, '').replace('@@', `globalThis.holdfastReached(${JSON.stringify(name)})`),
  }));
}
