// Bugs that the simulation must find, each as a change to the text of the sources. Most have been shipped by a trusted
// library, or were here once. One that no longer applies breaks the run: it is to be moved to where the code went.

import type { Patch } from '../runner/compile.ts';
import type { PlanOptions, Workload } from '../scenario/plan-scenario.ts';
import type { FaultKind } from '../scenario/scenario.ts';

export interface Mutant {
  readonly name: string;
  readonly patches: readonly Patch[];
  /** What the search need look at only: whose bug it is, where it is one recipe's, and which faults show it. */
  readonly plan: PlanOptions;
  /** The test file that finds it, where the simulation hardly ever meets it. */
  readonly killer?: string;
}

function mutant(
  name: string,
  ...changes: (readonly [file: string, find: string, replace: string])[]
): Mutant {
  return {
    name,
    plan: {},
    patches: changes.map(([file, find, replace]) => ({
      name: `mutant "${name}"`,
      file: `src/${file}`,
      find,
      replace,
    })),
  };
}

/** Mutants of one recipe. */
function of(workload: Workload, planted: Mutant): Mutant {
  return { ...planted, plan: { ...planted.plan, workload } };
}

/** Mutants that show when this goes wrong and that is done, and seldom otherwise. */
function rare(
  plan: Pick<PlanOptions, 'often'> & { readonly faults: readonly FaultKind[] },
  planted: Mutant,
): Mutant {
  return of('mutex', { ...planted, plan });
}

/** Mutants of the floor of tokens. */
function floors(planted: Mutant): Mutant {
  return { ...planted, plan: { workload: 'mutex', faults: ['raise-tokens', 'reset', 'lag'] } };
}

/** Mutants that show where waits run out of time while no server can be reached. */
function givingUp(planted: Mutant): Mutant {
  const faults = ['refuse', 'reset', 'cut', 'partition'] as const;
  return { ...planted, plan: { ...planted.plan, often: 'time-out', faults } };
}

/** Mutants that a test beside the sources finds. */
function killed(killer: string, planted: Mutant): Mutant {
  return { ...planted, killer };
}

const QUEUE = 'queue/zookeeper-queue.ts';
const JOIN = 'queue/join-attempt.ts';
const LONE = 'queue/lone-joins.ts';
const PASS_ON = 'queue/pass-on.ts';
const PLACE = 'queue/zookeeper-place.ts';
const WRITES = 'queue/settled-writes.ts';
const CATCH_UP = 'queue/catch-up.ts';
const TOKENS = 'queue/session-tokens.ts';
const OPINION = 'queue/second-opinion.ts';
const CONTEST = 'locks/contention.ts';
const LOCK_FILE = 'base/lock-file.ts';
const INTAKE = 'server/request-intake.ts';
const REFUSED_TEST = 'test/locks/refused-removals.test.ts';
const INTAKE_TEST = 'src/server/request-intake.test.ts';
const LEASE = 'locks/lock-lease.ts';
const LOCK = 'locks/lock.ts';
const TURN = 'locks/turn.ts';
const READ_WRITE = 'locks/read-write-lock.ts';
const SIMPLE = 'locks/simple-lock.ts';
const MULTI = 'locks/multi-lock.ts';
const SHARED_PLACE = 'locks/shared-place.ts';

export const mutants: readonly Mutant[] = [
  killed(
    'simulation/calls/bounded-calls.test.ts',
    mutant('a call without a bound waits for ever where no server answers', [
      'client/requester.ts',
      'if (silentLookCount === LOOKS_PER_SILENCE) onSilence(this.#late(what, silenceMs));\n      else lookLater();',
      'lookLater();',
    ]),
  ),
  killed(
    'simulation/calls/bounded-calls.test.ts',
    mutant('a public call is added that has no bound', [
      'locks/holdfast.ts',
      '  /** Who was asked for a lock, or lost it by force',
      '  async look(name: string): Promise<LockInfo> {\n    return this.inspect(name);\n  }\n\n  /** Who was asked for a lock, or lost it by force',
    ]),
  ),
  killed(
    'simulation/calls/bounded-calls.test.ts',
    mutant('a bound of a release is not heard', [
      LEASE,
      "return options ? this.#holding.awaitWithin('release', this.#released, options) : this.#released;",
      'return this.#released;',
    ]),
  ),
  killed(
    'src/locks/leader-election.test.ts',
    mutant('a stray request ends lead for good', [
      'locks/leader-election.ts',
      'if (ending.aborted && isBecauseOf(ending.reason, error)) return;',
      '',
    ]),
  ),
  killed(
    'src/locks/leader-election.test.ts',
    mutant('lead does not see a loss behind a request', [
      'locks/leader-election.ts',
      'if (!leadership.lossNow()) throw error;',
      'if (!ending.aborted || leadership.lossNow() !== ending.reason) throw error;',
    ]),
  ),
  mutant('use resolves although its lock was lost while its work ran', [
    'locks/work-under-lock.ts',
    'const loss = lease.lossNow();',
    'const loss = undefined as LockLostError | undefined;',
  ]),
  killed(
    'test/locks/use.test.ts',
    mutant('use rejects for a loss that came after its own release', [
      'locks/lock-lease.ts',
      'return this.#released !== undefined ? undefined : this.#holding.lossNow();',
      'return this.#holding.lossNow();',
    ]),
  ),
  killed(
    'src/locks/web-locks.test.ts',
    mutant(
      'a request puts the holder out before its options are looked at',
      ['locks/web-locks.ts', '    checkOptions(options);\n', ''],
      [
        'locks/web-locks.ts',
        '    const lease = await (ifAvailable',
        '    checkOptions(options);\n    const lease = await (ifAvailable',
      ],
    ),
  ),
  killed(
    'src/client/lease-options.test.ts',
    mutant('a negative lag of touches makes a lease longer', [
      'client/lease-options.ts',
      '{ min: 0, max: TOUCH_LAG_MS_MAX }',
      '{ min: -TOUCH_LAG_MS_MAX, max: TOUCH_LAG_MS_MAX }',
    ]),
  ),
  killed(
    'src/locks/wait-graph.test.ts',
    mutant('a run is not joined with the run that started it', [
      'locks/wait-graph.ts',
      'const childrenEnd = startedBy(session).every((child) => !blocked.has(child));',
      'const childrenEnd = true;',
    ]),
  ),
  killed(
    'src/cli/failures.test.ts',
    mutant('an answer of the servers ends the command like one of its own results', [
      'cli/failures.ts',
      "'throttled-op': EXIT.serverError",
      "'throttled-op': EXIT.failed",
    ]),
  ),
  killed(
    'src/cli/failures.test.ts',
    mutant('a failure turns the reading direction of the terminal', [
      'cli/report-failure.ts',
      '`holdfast: ${oneLine(known.message)}\\n`',
      '`holdfast: ${known.message}\\n`',
    ]),
  ),
  killed(
    'src/cli/run/ancestors.test.ts',
    mutant('a run that started this one is known by its session alone', [
      'cli/run/ancestors.ts',
      'session === ancestor.session && token === ancestor.token',
      'session === ancestor.session',
    ]),
  ),
  of(
    'again',
    mutant('a number that is not the next one is taken for it', [
      LONE,
      'if (made.sequence !== sequence || !watch.isSet) {',
      'if (!watch.isSet) {',
    ]),
  ),
  of(
    'again',
    mutant('an entry that has not left counts as gone', [
      LONE,
      'last === undefined || !this.#lastHasLeft ||',
      'last === undefined ||',
    ]),
  ),
  of(
    'again',
    mutant('an entry that was not alone counts as alone', [
      LONE,
      'if (entries.length !== 1 || entries[0]!.name !== made.name || foreign.length > 0) return;',
      '',
    ]),
  ),
  // The new folder's counter has to come to the very number: hardly ever.
  killed(
    'src/queue/lone-joins.test.ts',
    mutant('a folder that was made anew is taken for the old one', [
      LONE,
      'if (made.sequence !== sequence || !watch.isSet) {',
      'if (made.sequence !== sequence) {',
    ]),
  ),
  killed(
    'src/queue/lone-joins.test.ts',
    mutant('a folder counts as watched before it is', [
      LONE,
      'this.#remember(made, watch?.isSet ? watch : undefined);',
      'this.#remember(made, watch);',
    ]),
  ),
  mutant('a create whose answer was lost is made again without looking (zktools 2, Accumulo 1086)', [
    JOIN,
    'return untilWritable({ clock: store.clock, session }, () => this.#find());',
    'return undefined;',
  ]),
  mutant('a wait that is given up leaves its node (zk-ruby 49, aiozk 34)', [
    CONTEST,
    'void place.leave().catch(() => {}); // The first error is the one to tell.',
    '',
  ]),
  mutant('a create that is given up on the way leaves its node', [
    JOIN,
    'joining.then(leaveAll).catch(() => {});',
    '',
  ]),
  givingUp(
    mutant('an entry that nobody wants any more is made when there is a connection again', [
      JOIN,
      'if (!gate.isOpen) await gate.pass(signal);\n      signal?.throwIfAborted();',
      'if (!gate.isOpen) await gate.pass();',
    ]),
  ),
  killed(
    'src/queue/batched-writes.test.ts',
    mutant('a creation that waits for others is sent although it was withdrawn', [
      'queue/batched-writes.ts',
      'if (!creation.isWaiting) return;',
      'return;',
    ]),
  ),
  givingUp(
    mutant('a create whose answer was lost is made again although it was given up', [
      JOIN,
      'signal?.throwIfAborted();\n      const folders',
      'const folders',
    ]),
  ),
  givingUp(
    of(
      'simple',
      mutant('a simple lock that is given up makes its node when there is a connection again', [
        SIMPLE,
        'if (!gate.isOpen) await gate.pass(giveUp);\n      giveUp?.throwIfAborted();',
        'if (!gate.isOpen) await gate.pass();',
      ]),
    ),
  ),
  killed(
    'src/queue/connection-gate.test.ts',
    mutant('a wait for a connection that is given up is kept until there is one', [
      'queue/connection-gate.ts',
      '        takeBack();\n',
      '',
    ]),
  ),
  mutant('a try does not settle before its place has been left', [
    CONTEST,
    'await orAbort(place.leave(), signal); // Goes on behind the call.',
    'await place.leave();',
  ]),
  of(
    'multi-lock',
    mutant('a try for several locks does not settle before they have been left', [
      MULTI,
      'await orAbort(Promise.all(places.map((place) => place.leave())), giveUp);',
      'await Promise.all(places.map((place) => place.leave()));',
    ]),
  ),
  mutant('a look at entries with the same number goes on when it is given up', [
    QUEUE,
    'this.read(await this.#store.facts.zk.children(this.path, options), options),',
    'this.read(await this.#store.facts.zk.children(this.path, options), {}),',
  ]),
  killed(
    'test/locks/trying.test.ts',
    mutant('an option that is given as undefined hides its default', [
      'base/option-names.ts',
      'Object.entries(options).filter(([, value]) => value !== undefined)',
      'Object.entries(options)',
    ]),
  ),
  killed(
    'src/locks/give-up.test.ts',
    mutant('an upgrade goes on waiting when the lease that it stands on is lost', [
      'locks/give-up.ts',
      '[onLost((error) => this.#controller.abort(error)), ',
      '[onLost(() => {}), ',
    ]),
  ),
  killed(
    'src/locks/task-queue.test.ts',
    mutant('a task waits for a signal that has fired before', [
      'locks/task-queue.ts',
      'if (signal?.aborted) return reject(signal.reason);',
      '',
    ]),
  ),
  mutant('a try that was overtaken leaves its node (kazoo 732)', [
    CONTEST,
    '  await orAbort(place.leave(), signal); // Goes on behind the call.\n  return undefined;',
    '  return undefined;',
  ]),
  mutant('a release is tried once only (CURATOR-486, CURATOR-678)', [
    WRITES,
    'if (isSessionOver(error)) return;\n      if (!isInterrupted(error)) throw error;',
    'if (isSessionOver(error) || isInterrupted(error)) return;\n      throw error;',
  ]),
  mutant('watches are not set again after a reconnect (kazoo 170, twitter-commons 20)', [
    'session/session-machine.ts',
    'for (const request of this.#restoration.requests()) this.#send(request, nowMs);',
    'for (const request of this.#restoration.requests()) if (request.purpose === undefined) this.#send(request, nowMs);',
  ]),
  mutant('watches are set again as of now, not of when they left off (ZOOKEEPER-4655)', [
    'server/watch-requests.ts',
    "if (!node) missed.push({ type: 'node-deleted', path });\n        else if (node.mzxid",
    'if (!node) watches.watchData(path, connection);\n        else if (node.mzxid',
  ]),
  mutant('contenders are sorted by their whole names (kazoo 309, 385)', [
    QUEUE,
    'entries.sort(inOrder);\n    const unordered',
    'entries.sort((a, b) => (a.name < b.name ? -1 : 1));\n    const unordered',
  ]),
  rare(
    { faults: ['stall'], often: 'hold-long' },
    mutant('a lease has no end of its own', [
      'session/contact.ts',
      'if (this.#resumingSinceMs === undefined) return endMs;',
      'if (endMs > 0) return Number.MAX_SAFE_INTEGER;',
    ]),
  ),
  rare(
    { faults: ['stall'], often: 'hold-long' },
    mutant('a lease lasts as long as the session, and then some', [
      'session/contact.ts',
      '- lagMs - this.heartbeatPeriodMs;',
      '- lagMs * 0 + this.heartbeatPeriodMs * 2;',
    ]),
  ),
  rare(
    { faults: ['limit'], often: 'hold-long' },
    mutant('a handshake that is not answered shortens no lease', [
      'session/session-machine.ts',
      'if (this.#grant.isResumable) this.#contact.resuming(nowMs);',
      '',
    ]),
  ),
  killed(
    'src/session/resuming.test.ts',
    mutant('of several handshakes that are not answered the last counts', [
      'session/contact.ts',
      'this.#resumingSinceMs ??= nowMs;',
      'this.#resumingSinceMs = nowMs;',
    ]),
  ),
  killed(
    'src/session/resuming.test.ts',
    mutant('a lease is promised by the newest timeout, not by the smallest', [
      'session/contact.ts',
      'return Math.min(this.#timeoutMs, this.#smallestTimeoutMs);',
      'return this.#timeoutMs;',
    ]),
  ),
  rare(
    { faults: ['impostor'], often: 'hold-long' },
    mutant('what an unproven peer grants counts', [
      'session/session-machine.ts',
      "this.#moveLink({ kind: 'authenticating',",
      "this.#contact.granted(grant.timeoutMs, grant.sentAtMs, false);\n    this.#moveLink({ kind: 'authenticating',",
    ]),
  ),
  killed(
    'src/session/unproven-peers.test.ts',
    mutant('an unproven peer ends the session', [
      'session/session-machine.ts',
      'if (!credentials.sasl)\n',
      'if (!credentials.sasl || !grant)\n',
    ]),
  ),
  rare(
    { faults: ['restore'] },
    mutant('a lost session takes what was seen with it', [
      'client/session-keeper.ts',
      'if (session.lastZxid > this.#seenZxid) this.#seenZxid = session.lastZxid;',
      '',
    ]),
  ),
  rare(
    { faults: ['restore'] },
    mutant('servers are trusted to look at what was seen', [
      'session/session-machine.ts',
      'if (header.zxid > 0n && header.zxid < this.#options.seenZxid) {',
      'if (header.zxid < 0n) {',
    ]),
  ),
  killed(
    'src/session/unproven-peers.test.ts',
    mutant('one server that refuses the credentials ends the client', [
      'session/session-machine.ts',
      'if (!this.#options.plan.refused(this.#server!, credentials)) {',
      'if (this.#options.plan.refused(this.#server!, credentials) && false) {',
    ]),
  ),
  killed(
    'src/client/server-list.test.ts',
    mutant('credentials that were taken once are given up', [
      'client/server-list.ts',
      "this.#refusals.set(credentials, 'accepted');",
      '',
    ]),
  ),
  killed(
    'src/client/queue-limits.test.ts',
    mutant('what waits for a connection has no bound', [
      'session/request-pipeline.ts',
      'if (this.#queued.length >= requestsMax || this.#queuedBytes + request.frameBytes > bytesMax) return false;',
      '',
    ]),
  ),
  killed(
    'src/client/queue-limits.test.ts',
    mutant('what was given up counts as waiting', [
      'session/request-pipeline.ts',
      'if (isQueued) this.#queuedBytes -= request.frameBytes;',
      '',
    ]),
  ),
  // A holder's last answer must be late by more than the lease's margin, and nothing of it reach the server meanwhile.
  killed(
    'src/session/session-machine.test.ts',
    mutant('a lease counts from the answer', [
      'session/session-machine.ts',
      'this.#contact.answered(request.sentAtMs, ok && isConfirmedByLeader(request));',
      'this.#contact.answered(nowMs, ok && isConfirmedByLeader(request));',
    ]),
  ),
  rare(
    { faults: ['isolate'], often: 'hold-long' },
    mutant(
      'a lease is prolonged by what a follower answers by itself',
      [
        'session/session-machine.ts',
        "new OwnRequest('heartbeat', operations.sync, { path: '/' })",
        "new OwnRequest('heartbeat', operations.exists, { path: '/', watch: false })",
      ],
      [
        'session/session-request.ts',
        'return operation.writes || operation === operations.sync;',
        'return operation.writes || operation === operations.sync || operation === operations.exists;',
      ],
    ),
  ),
  mutant('the token is the sequence number', [
    JOIN,
    'entry, czxid, token, data }));',
    'entry, czxid, token: BigInt(entry.sequence) + 1n, data }));',
  ]),
  mutant(
    'a grant is not looked at again before it is handed out (etcd 11456)',
    [
      PLACE,
      "if (hold.remainingMs() > 0 && session.state === 'connected' && !session.readOnly) {",
      'if (session !== undefined) {',
    ],
    [LOCK, 'if (grant.hold.remainingMs() <= 0) {', 'if (this.name === undefined) {'],
    [LOCK, 'const over = grant.hold.remainingMs() === 0;', 'const over = false;'],
    [LOCK, 'holding.assertNotLost(); // Never hand out what is lost already.', ''],
  ),
  rare(
    { faults: ['stall'], often: 'time-out' },
    mutant('a grant after the deadline is handed out', [
      LOCK,
      'if (!over && !giveUp.isDue) {',
      'if (!over) {',
    ]),
  ),
  mutant('any departure is a grant', [
    CONTEST,
    "if (departure === 'released' && turn.baton && !place.evicted) break;",
    'if (departure && turn.baton && !place.evicted) break;',
  ]),
  rare(
    { faults: ['remove'] },
    // Both guards: what the baton lets through is refused when it is handed out, as a removal too.
    mutant(
      'a baton grants to one who was removed',
      [
        CONTEST,
        "if (departure === 'released' && turn.baton && !place.evicted) break;",
        "if (departure === 'released' && turn.baton) break;",
      ],
      [LOCK, 'holding.assertNotLost(); // Never hand out what is lost already.', ''],
    ),
  ),
  mutant('a neighbour that gives up is a grant', [
    PLACE,
    "if (departure !== 'released') return watch();",
    '',
  ]),
  killed(
    'src/queue/catch-up.test.ts',
    mutant('a server is taken for the only one before it has said so', [
      CATCH_UP,
      'const server = { connection, isStandalone: false };',
      'const server = { connection, isStandalone: true };',
    ]),
  ),
  killed(
    'src/queue/catch-up.test.ts',
    mutant('what was learnt of a server is believed of the next one', [
      CATCH_UP,
      'return server?.connection === this.#session.connectionCount && server.isStandalone;',
      'return server?.isStandalone;',
    ]),
  ),
  killed(
    'src/queue/catch-up.test.ts',
    mutant('a lock that is handed over after a write has left is caught up with by that write', [
      CATCH_UP,
      'this.#unsent = undefined; // What is left after it has gone may have been written behind it.',
      '',
    ]),
  ),
  killed(
    'src/queue/catch-up.test.ts',
    mutant('a declared connection is believed to have shown all to everyone', [
      CATCH_UP,
      'if (carriesAllWrites && lastZxid <= this.#session.lastZxid) return undefined;',
      'if (carriesAllWrites) return undefined;',
    ]),
  ),
  killed(
    'src/queue/zookeeper-place.test.ts',
    mutant('places are known by a path that means another one to clients with another chroot', [
      PLACE,
      'this.#serverPath = store.zk.serverPath(this.path);',
      'this.#serverPath = this.path;',
    ]),
  ),
  mutant('who left its place because it was lost tells its neighbour that it was released', [
    PLACE,
    "isFree ? 'released' : 'gone', by);",
    "'released', by);",
  ]),
  // Who was removed by hand may be wrong about holding, as far as the simulation knows.
  killed(
    'src/queue/zookeeper-place.test.ts',
    mutant('a neighbour that was removed is not told before the lock goes on', [
      PASS_ON,
      'if (isGone) holder.evict();',
      '',
    ]),
  ),
  killed(
    'src/queue/zookeeper-place.test.ts',
    mutant('who was told and has let go is taken for the holder', [
      PASS_ON,
      'remainingOf(followers)',
      'followers',
    ]),
  ),
  of('read-write', mutant('a reader passes the baton', [TURN, "return role !== 'read' && ", 'return '])),
  of(
    'read-write',
    mutant('a writer that was downgraded passes the baton', [
      PLACE,
      'const isFree = released && !this.#accompanied && ',
      'const isFree = released && ',
    ]),
  ),
  of(
    'read-write',
    mutant('a reader does not wait for writers', [
      TURN,
      'export const reading: TurnRule = { roles: ofReadersAndWriters, blockedBy: isWriter };',
      'export const reading: TurnRule = { roles: ofReadersAndWriters, blockedBy: () => false };',
    ]),
  ),
  of(
    'read-write',
    mutant('a writer does not wait for readers (CURATOR-621)', [
      TURN,
      'export const writing: TurnRule = { roles: ofReadersAndWriters, blockedBy: () => true };',
      'export const writing: TurnRule = { roles: ofReadersAndWriters, blockedBy: isWriter };',
    ]),
  ),
  of(
    'semaphore',
    mutant('a semaphore has one permit more', [
      'locks/semaphore.ts',
      'Math.max(...places) < this.permits;',
      'Math.max(...places) <= this.permits;',
    ]),
  ),
  of(
    'semaphore',
    mutant('a semaphore that is given up leaves its permits (CURATOR-462, kazoo 429)', [
      'locks/semaphore.ts',
      'for (const place of places) void place.leave().catch(() => {});\n      throw error;',
      'throw error;',
    ]),
  ),
  of(
    'multi-lock',
    mutant('a multi-lock waits for one of its locks only', [
      MULTI,
      'Promise.race([Promise.all(turns), removed.promise])',
      'Promise.race([Promise.all(turns.slice(0, 1)), removed.promise])',
    ]),
  ),
  {
    ...mutant('a multi-lock is granted although one of its nodes was removed while it waited for another', [
      MULTI,
      'const isWaiting = !joined.every(isFirst);',
      'const isWaiting = joined.length === 0 || isFirst === undefined;',
    ]),
    plan: { workload: 'multi-lock', faults: ['remove'], often: 'hold-long' },
  },
  killed(
    'src/queue/zookeeper-place.test.ts',
    mutant('a hold that awaited a reconnection does not look for its node', [
      PLACE,
      "Promise.all([zk.sync('/', { session }), this.#own.watch()])",
      "zk.sync('/', { session })",
    ]),
  ),
  killed(
    'src/queue/zookeeper-place.test.ts',
    mutant('a hand-over that cannot be sent is remembered as a release that failed', [
      PLACE,
      'this.#passOn(followers).catch(() => false);',
      'this.#passOn(followers);',
    ]),
  ),
  killed(
    'test/locks/request-bytes.test.ts',
    mutant('all successors of a place are checked by one transaction, however many', [
      PASS_ON,
      'const CHECKS_MAX = 128;',
      'const CHECKS_MAX = 1_000_000;',
    ]),
  ),
  killed(
    'src/queue/batched-writes.test.ts',
    mutant('an entry that was given up is made after its transaction was refused', [
      'queue/batched-writes.ts',
      'const wanted = writes.filter((write) => !write.givenUp);',
      'const wanted = writes;',
    ]),
  ),
  killed(
    'src/queue/batched-writes.test.ts',
    mutant('a transaction that cannot be sent fails all writes that are in it', [
      'queue/batched-writes.ts',
      'return this.#sendOneByOne(writes); // Refused before it was sent',
      'for (const write of writes) write.answer.reject(new RangeError("too long")); return; // Refused before it was sent',
    ]),
  ),
  killed(
    'test/locks/request-bytes.test.ts',
    mutant('watches of one tick are counted and not measured', [
      'queue/batched-watches.ts',
      'present.byteCount + byteCount > BATCH_BYTES_MAX);',
      'present.byteCount + byteCount < 0);',
    ]),
  ),
  killed(
    'src/locks/lock-name.test.ts',
    mutant('the length of a name is counted in characters', [
      'locks/lock-name.ts',
      'const byteCount = utf8Bytes(name);\n  if (byteCount > NAME',
      'const byteCount = name.length;\n  if (byteCount > NAME',
    ]),
  ),
  rare(
    { faults: [], often: 'close' },
    // Both guards: with either of them the other is not needed, but where a lock-delay ends in that very moment.
    mutant(
      'the end of a session is taken for a removal',
      [
        'queue/own-node.ts',
        'if (this.#isLeft || this.#isEvicted || isEnding(this.#shared.session)) return;',
        'if (this.#isLeft || this.#isEvicted) return;',
      ],
      [
        CONTEST,
        'view = await place.view(signal);',
        'if (place.evicted) throw evictedFrom(contest.lockName);\n      view = await place.view(signal);',
      ],
    ),
  ),
  mutant('a lost session ends a wait', [
    CONTEST,
    'if (!(error instanceof SessionLostError)) throw error;\n      signal?.throwIfAborted();',
    'throw error;',
  ]),
  rare(
    { faults: ['remove'] },
    mutant('what guard writes does not depend on the lock', [
      LEASE,
      'multi([...checks, ...writes],',
      'multi([...checks.map(() => ops.check("/")), ...writes],',
    ]),
  ),
  mutant('a release is not repeated while the disk is full', [
    WRITES,
    'if (!isRefusedForNow(error)) throw error;\n    }\n    await',
    'throw error;\n    }\n    await',
  ]),
  of(
    'multi-lock',
    mutant(
      'a multi-lock takes a hold that may have ended',
      [MULTI, 'const hold = await holdOfAll(places, giveUp);', 'const hold = grants[0]!.hold;'],
      [
        MULTI,
        'for (const { hold } of grants) hold.release(); // The',
        'for (const { hold } of grants.slice(1)) hold.release(); // The',
      ],
      [LOCK, 'if (grant.hold.remainingMs() <= 0) {', 'if (this.name === undefined) {'],
      [LOCK, 'const over = grant.hold.remainingMs() === 0;', 'const over = false;'],
    ),
  ),
  of(
    'simple',
    mutant('a simple lock deletes again without looking', [
      WRITES,
      'if (madeBy && mayBeAnother && (',
      'if (madeBy && madeBy.mayBeAnother && (',
    ]),
  ),
  of(
    'simple',
    mutant('a simple lock gives up when its folder is not made at once', [
      SIMPLE,
      '      if (!isInterrupted(error)) throw error;\n    }\n  }\n\n  /**\n   * Whether a creation',
      '      throw error;\n    }\n  }\n\n  /**\n   * Whether a creation',
    ]),
  ),
  killed(
    'src/locks/lock-lease.test.ts',
    mutant('a guarded write that is on its way is overtaken by a neighbour of another connection', [
      LEASE,
      'const byServer = this.#grant.openWriteCount > 0;',
      'const byServer = false;',
    ]),
  ),
  {
    ...mutant('a guarded write of a task that shares its node is overtaken by a neighbour', [
      SHARED_PLACE,
      'const byServer = this.#grant.openWriteCount > 0;',
      'const byServer = false;',
    ]),
    plan: { workload: 'hand-off', faults: ['delay'] },
  },
  killed(
    'src/queue/zookeeper-place.test.ts',
    mutant('a plain write that a lost connection left behind is done behind those of the next holder', [
      PLACE,
      "if (session.state !== 'connected' || session.connectionCount !== this.#connection) return true;",
      '',
    ]),
  ),
  killed(
    'src/queue/zookeeper-place.test.ts',
    mutant('a plain write that was given up is done behind those of the next holder', [
      PLACE,
      'return session.isWriteLeftOpen;',
      'return false;',
    ]),
  ),
  killed(
    'src/queue/second-opinion.test.ts',
    mutant('the stale-server check is blind from the 301st wait on', [
      OPINION,
      'const left = [...readable, ...lasting.filter(({ isUnreadable }) => isUnreadable)];',
      'const left = [...readable, ...lasting.filter(({ isUnreadable }) => isUnreadable)].slice(0, CHECKS_MAX);',
    ]),
  ),
  killed(
    'src/queue/second-opinion.test.ts',
    mutant('one entry that may not be read keeps all others from being asked about', [
      OPINION,
      "if (condition !== 'no-node' && condition !== 'no-auth') throw error;",
      "if (condition !== 'no-node') throw error;",
    ]),
  ),
  killed(
    'src/queue/second-opinion.test.ts',
    mutant('the end of an entry that may not be read is heard of by events alone', [
      OPINION,
      'if (doubt.waits.size > 0) this.#list(doubt);',
      '',
    ]),
  ),
  {
    ...mutant('a successor of another session is granted a lock before its server has caught up', [
      CATCH_UP,
      'if (session === this.#session || this.#isStandalone) return undefined;',
      'return undefined;',
    ]),
    plan: { workload: 'mutex', faults: ['lag'] },
  },
  of(
    'read-write',
    mutant(
      'a writer that has lost its lock goes on as a reader',
      [READ_WRITE, 'writer.assertNotLost();', ';'],
      ['queue/entry-beside.ts', 'ops.check(`${folder}/${other}`),', ''],
    ),
  ),
  rare(
    { faults: ['remove'] },
    mutant('a contender that is removed in the moment of its grant ends as one that held', [
      LOCK,
      'throw error.cause; // Removed in the moment of its grant.',
      'throw error;',
    ]),
  ),
  rare(
    { faults: ['expire'] },
    mutant('a wait that was called off ends with the session', [
      CONTEST,
      'signal?.throwIfAborted(); // The caller',
      'if (signal?.aborted) throw error; // The caller',
    ]),
  ),
  mutant('the server expires sessions early', [
    'server/session-table.ts',
    'this.#due(session, nowMs + session.timeoutMs);',
    'this.#due(session, nowMs + session.timeoutMs / 2 - this.#tickMs);',
  ]),
  mutant('the server answers before the disk has it (etcd 14370)', [
    'server/transaction-log.ts',
    'const newest = this.newestZxid;',
    'const newest = this.#journal ? undefined : this.newestZxid;',
  ]),
  mutant(
    'the server keeps what an expired session made',
    [
      'server/session-ends.ts',
      '.firstEphemeralsOf(sessionId, ENDED_AT_ONCE)\n',
      '.firstEphemeralsOf(sessionId, ENDED_AT_ONCE)\n      .slice(1)\n',
    ],
    // What is left must not be removed later either, or the upkeep would go on with it for ever.
    ['server/session-ends.ts', 'if (tree.hasEphemerals(id)) this.unfinished.add(id);', ''],
  ),
  of(
    'hand-off',
    mutant('tasks that share a node pass it on for as long as any of them waits', [
      SHARED_PLACE,
      "if (this.#others === 'none') return 'enter';",
      "if (this.#others !== 'unknown') return 'enter';",
    ]),
  ),
  of(
    'hand-off',
    mutant('holds of one node are not told apart', [
      SHARED_PLACE,
      'this.#sectionCount++, this.#watched',
      '(this.#sectionCount++, 0), this.#watched',
    ]),
  ),
  of(
    'cached',
    mutant('a lock that is kept does not look out for others', [
      'queue/others-watch.ts',
      "if (type !== 'session-lost') told();",
      '',
    ]),
  ),
  of(
    'cached',
    mutant('a lock that is kept is entered beside the task that is in it', [
      'locks/shared-mutex.ts',
      'if (place && !place.isEntered && this.#tasks.length === 0 &&',
      'if (place && this.#tasks.length === 0 &&',
    ]),
  ),
  rare(
    { faults: ['lag', 'isolate'] },
    mutant('a fence in ZooKeeper believes what a lagging follower shows', [
      'locks/fence.ts',
      'else await this.#zk.multi([ops.check(this.path, version)], bounds);',
      '',
    ]),
  ),
  rare(
    { faults: ['lag', 'isolate'], often: 'fence-late' },
    mutant('a fence in ZooKeeper writes over what it has not read', [
      'locks/fence.ts',
      'encodeMark(mark), { ...bounds, version });',
      'encodeMark(mark), {});',
    ]),
  ),
  of(
    'semaphore',
    mutant('leases younger than a waiting task of their session are shown as pending', [
      'locks/semaphore-view.ts',
      'permits === undefined ? nodes[0]!.info.token !== newest : foreignCount + lastIndex < permits;',
      'nodes[0]!.info.session !== first?.session || nodes[0]!.info.token < first.token;',
    ]),
  ),
  killed(
    'src/locks/semaphore-view.test.ts',
    mutant('a contender that has some of its permits is shown as a holder', [
      'locks/semaphore-view.ts',
      'group.lastIndex = index;',
      '',
    ]),
  ),
  killed(
    'src/server/server-core.test.ts',
    mutant('a multi writes access lists of one byte too many', [
      'server/write-operations.ts',
      'if (aclBytes > this.#limits.multiAclBytesMax)',
      'if (aclBytes > this.#limits.multiAclBytesMax + 1)',
    ]),
  ),
  killed(
    'simulation/calls/holder-look.test.ts',
    mutant('a wait asks who holds the lock though it has ended', [
      'locks/holder-look.ts',
      'this.#cancel?.();',
      '',
    ]),
  ),
  killed(
    'simulation/calls/holder-look.test.ts',
    mutant('a wait asks for a lock of several that it has been granted', [
      'locks/holder-look.ts',
      'this.#names.delete(name);',
      '',
    ]),
  ),
  killed(
    'test/locks/unknown-options.test.ts',
    mutant('an option that does not exist is ignored by acquire', [
      LOCK,
      '    this.checkNames(call, options);\n',
      '',
    ]),
  ),
  killed(
    'test/locks/unknown-options.test.ts',
    mutant('a reader within a lease has any option', [
      READ_WRITE,
      "    this.checkOptions('acquire', options);\n    return this.#sharedWith",
      '    return this.#sharedWith',
    ]),
  ),
  killed(
    REFUSED_TEST,
    mutant('a refused removal is not repeated', [
      PLACE,
      'void repeatRefusedRemoval(store, entry, () => this.leave());',
      'void entry;',
    ]),
  ),
  killed(
    REFUSED_TEST,
    mutant('a refused release of a shared place is forgotten', [
      SHARED_PLACE,
      'return this.#gone ? this.leave() : DONE;',
      'return DONE;',
    ]),
  ),
  killed(
    REFUSED_TEST,
    mutant('a refused shared place is not tried again before the next one', [
      'locks/shared-mutex.ts',
      'if (this.#refused) await orAbort(this.#leaveRefused(), giveUp);',
      '',
    ]),
  ),
  killed(
    REFUSED_TEST,
    mutant('a refused release of a simple lock removes the node of the next holder', [
      PLACE,
      'mayBeAnother: this.#isRefused',
      'mayBeAnother: false',
    ]),
  ),
  killed(
    'src/locks/leader-election.test.ts',
    mutant('a refused release ends the leading', [
      'locks/leader-election.ts',
      "this.context.log('warn', 'the release at the end of a term was refused, and is repeated', refusal);",
      'throw refusal.error;',
    ]),
  ),
  killed(
    'simulation/calls/holder-look.test.ts',
    mutant('a waiter names itself as the holder', [
      'locks/inspection.ts',
      'holders.find((entry) => !own.has(entry.name))',
      'holders[0]',
    ]),
  ),
  killed(
    'simulation/calls/holder-look.test.ts',
    mutant('equal numbers are taken in the order of their names', [
      'locks/inspection.ts',
      'if (ties.size === 0) return entries;',
      'if (ties.size >= 0) return entries;',
    ]),
  ),
  killed(
    'test/locks/one-signal.test.ts',
    mutant('a wait with a bound adds a listener of its own', [
      'locks/give-up.ts',
      'this.#stopListening = ifAborted(outer, () => this.#controller.abort(outer!.reason));',
      "outer?.addEventListener('abort', () => this.#controller.abort(outer!.reason));\n    this.#stopListening = () => {};",
    ]),
  ),
  killed(
    'test/locks/bad-functions.test.ts',
    mutant('a lock is taken for what cannot be run', [LOCK, "    checkFunction('use', run);\n", '']),
  ),
  killed(
    'src/locks/lock-registry.test.ts',
    mutant('lock objects are kept for ever', [
      'locks/lock-registry.ts',
      'this.#collected.register(made, key);',
      'this.#listenedTo.add(made);',
    ]),
  ),
  killed(
    'src/locks/lock-registry.test.ts',
    mutant('a late finalizer forgets the new object of a name', [
      'locks/lock-registry.ts',
      'if (this.#objects.get(key)?.deref() === undefined) this.#objects.delete(key);',
      'this.#objects.delete(key);',
    ]),
  ),
  killed(
    'src/locks/holdfast.test.ts',
    mutant('an election with an id and one whose name contains that id share an object', [
      'locks/holdfast.ts',
      "id === undefined ? ['election', name] : ['election', name, id];",
      "['election', id === undefined ? name : `${name} as ${id}`];",
    ]),
  ),
  // The end of the lease is told by a timer as well; only a stall lets a task come first.
  killed(
    'src/locks/shared-place.test.ts',
    mutant(
      'a lock that is kept is granted without a look at its lease',
      [
        SHARED_PLACE,
        'if (this.#over || this.#ending || this.#grant.hold.remainingMs() <= 0) return false;',
        'if (this.#over || this.#ending) return false;',
      ],
      [LOCK, 'if (grant.hold.remainingMs() <= 0) {', 'if (this.name === undefined) {'],
      [LOCK, 'const over = grant.hold.remainingMs() === 0;', 'const over = false;'],
      [LOCK, 'holding.assertNotLost(); // Never hand out what is lost already.', ''],
    ),
  ),
  killed(
    'src/telemetry/open-telemetry.test.ts',
    mutant('an exception of a span processor reaches the lock', [
      'telemetry/open-telemetry.ts',
      'guarded(() => span.end());',
      'span.end();',
    ]),
  ),
  killed(
    'src/testing/observing.test.ts',
    mutant('an observation that ends leaves its watch at the server', [
      'client/observe.ts',
      'answer.then(remove, remove);',
      '',
    ]),
  ),
  killed(
    'src/server/watch-requests.test.ts',
    mutant('setWatches reports nodes that may not be read', [
      'server/watch-requests.ts',
      'isAllowed(acl, permissions.read, connection.identities);',
      'isAllowed(acl, permissions.read, connection.identities) || true;',
    ]),
  ),
  killed(
    'simulation/calls/watch-upkeep.test.ts',
    mutant('a watch is removed together with one that is being set', [
      'session/unneeded-watches.ts',
      'this.#needs.hasListener(kind, path) || this.#needs.isRequested(kind, path);',
      'this.#needs.hasListener(kind, path);',
    ]),
  ),
  killed(
    'simulation/calls/watch-upkeep.test.ts',
    mutant('a watch that could not be removed at once is never removed', [
      'session/session-machine.ts',
      "if (this.#state.kind === 'connected') this.#removeUnneededWatches(nowMs);",
      '',
    ]),
  ),
  killed(
    'simulation/calls/watch-upkeep.test.ts',
    mutant('a watch that is being set stays when its listener is gone', [
      'session/watch-registry.ts',
      'if (intent.kind === kind && intent.watcher === watcher) this.#unwanted.add(intent);',
      '',
    ]),
  ),
  killed(
    'simulation/calls/watch-upkeep.test.ts',
    mutant('a stream whose watch was removed waits for ever', [
      'client/watch-stream.ts',
      "if (event.type === 'watch-removed') this.#end = 'done';",
      '',
    ]),
  ),
  killed(
    'simulation/calls/watch-upkeep.test.ts',
    mutant('a watch that has fired fires again when its request is repeated', [
      'session/watch-registry.ts',
      'if (this.#registeredEarly.has(intent) && !this.#tables[kind].includes(path, watcher))\n        this.#unwanted.add(intent);',
      '',
    ]),
  ),
  killed(
    'src/testing/observing.test.ts',
    mutant('return waits for the next that waits', [
      'base/endable-generator.ts',
      'this.#ending.abort(ENDED);',
      '',
    ]),
  ),
  killed(
    'src/client/zookeeper.test.ts',
    mutant('a misspelt option of a request is ignored', [
      'client/requester.ts',
      'checkRequestOptions(spec.operation.name, options);',
      '',
    ]),
  ),
  killed(
    'src/base/lock-file.test.ts',
    mutant("a folder's lock goes by the process number of its holder", [
      LOCK_FILE,
      'if (socket === undefined) return isRunning(holder)',
      'if (socket !== null) return isRunning(holder)',
    ]),
  ),
  killed(
    'src/base/lock-file.test.ts',
    mutant("a folder's lock is removed by a server that has it no more", [
      LOCK_FILE,
      'if (same(await readHolder(path), own)) await rm(path',
      'await rm(path',
    ]),
  ),
  killed(
    'src/local/local-place.test.ts',
    mutant("a local server's folder goes by the name of the host", [
      'local/local-place.ts',
      'isShared(base) ? machineName(machine) : SERVER_FOLDER',
      'machine.hostName',
    ]),
  ),
  killed(
    'src/local/local-place.test.ts',
    mutant('a shared folder is closed to others by a local server', [
      'local/private-folder.ts',
      'isNamed ? OTHERS : OTHERS_WRITE',
      'isNamed ? 0 : OTHERS_WRITE',
    ]),
  ),
  killed(
    'src/local/hostile-files.test.ts',
    mutant('the record of a local server is believed before anyone looks whose folder it is in', [
      'local/server-record.ts',
      '  checkPlace(place);\n',
      '',
    ]),
  ),
  killed(
    'src/local/hostile-files.test.ts',
    mutant('a record that others may write to is believed', [
      'local/own-file.ts',
      '    checkOwn(path, stat);\n',
      '',
    ]),
  ),
  killed(
    'src/local/hostile-files.test.ts',
    mutant('a socket on which another user may listen is believed', [
      'local/server-record.ts',
      '  checkOwnSocket(record.socketPath);\n',
      '',
    ]),
  ),
  killed(
    'src/local/hostile-files.test.ts',
    mutant('a record names the socket, wherever that is', [
      'local/server-record.ts',
      '!isSocketOf(place, record.socketPath)',
      'false',
    ]),
  ),
  killed(
    'src/local/hostile-files.test.ts',
    mutant("a local server's folder may be replaced by another user", [
      'local/private-folder.ts',
      '  checkFoldersAbove(path, homeFolder);\n',
      '',
    ]),
  ),
  killed(
    'src/local/hostile-files.test.ts',
    mutant('whatever process a record names is ended as the local server', [
      'local/ensure-local-server.ts',
      'while (isRunning(record) && !isServer()) {',
      'while (!record) {',
    ]),
  ),
  killed(
    'src/cli/failures.test.ts',
    mutant('misuse of an option of an option is called a fault of ours', [
      'cli/failures.ts',
      '(?:(?:, | and )${SUBJECT})*: `',
      ': `',
    ]),
  ),
  killed(
    'src/local/other-servers.test.ts',
    mutant('a second local server is started where the files of the first are gone', [
      'local/ensure-local-server.ts',
      '[other] = serversBeside(place);',
      'other = undefined;',
    ]),
  ),
  killed(
    'src/daemon/keep-in-place.test.ts',
    mutant('a socket that was removed is not made again', [
      'daemon/keep-in-place.ts',
      'await server.listener.listenAnew({ path: place.socketPath });',
      'if (stopped) await server.listener.listenAnew({ path: place.socketPath });',
    ]),
  ),
  killed(
    'src/cli/run/child-environment.test.ts',
    mutant("the credentials of a run are in its command's environment", [
      'cli/run/child-environment.ts',
      'const { [AUTH_VARIABLE]: _, ...others } = env;',
      'const others = env;',
    ]),
  ),
  killed(
    'src/cli/run/ancestors.test.ts',
    mutant('a run above whose locks are not named holds none', [
      'cli/run/ancestors.ts',
      'locks?.includes(name) ?? true',
      'locks?.includes(name) ?? false',
    ]),
  ),
  killed(
    'src/cli/run/ancestors.test.ts',
    mutant('the names of locks above grow beyond what an environment takes', [
      'cli/run/held-variable.ts',
      'const TEXT_BYTES_MAX = 64 * 1024;',
      'const TEXT_BYTES_MAX = 1024 * 1024;',
    ]),
  ),
  killed(
    'src/cli/run/min-hold.test.ts',
    mutant('any signal ends a hold that is kept behind its command', [
      'cli/run/min-hold.ts',
      'else if (asksToEnd(signal)) resolve',
      'else resolve',
    ]),
  ),
  killed(
    'src/cli/run/min-hold.test.ts',
    mutant('a lock that was lost before is kept for its time', [
      'cli/run/min-hold.ts',
      'if (signal.aborted) return listener();',
      '',
    ]),
  ),
  killed(
    'src/cli/run/tcp-reentry.test.ts',
    mutant('what runs under a hold has no grace at its end', [
      'cli/run/tcp-reentry.ts',
      'this.tell({ endByMs });',
      'this.expel();',
    ]),
  ),
  killed(
    'src/cli/run/tcp-reentry.test.ts',
    mutant('a run above that was killed is taken for one that has lost its lock', [
      'cli/run/tcp-reentry.ts',
      'if (!over) tell(state);',
      'tell(undefined);',
    ]),
  ),
  killed(
    'src/cli/original-bytes.test.ts',
    mutant('arguments that are not UTF-8 are changed without a word', [
      'cli/original-bytes.ts',
      'findIndex((bytes) => !isUtf8(bytes))',
      "findIndex((bytes) => !isUtf8(bytes) && bytes.includes('\\ufffd'))",
    ]),
  ),
  killed(
    'src/cli/run/guardian.test.ts',
    mutant('a guardian that ends is started again at once, for ever', [
      'cli/run/guardian.ts',
      'const delayMs = DELAYS_MS[this.#earlyDeaths - 1];',
      'const delayMs = DELAYS_MS[0];',
    ]),
  ),
  killed(
    'src/cli/run/guardian.test.ts',
    mutant('a run begins although the file of its guardian is gone', [
      'cli/run/guardian.ts',
      'if (!existsSync(entry)) {',
      'if (!entry) {',
    ]),
  ),
  floors(
    mutant('a change of the floor of tokens is not heard', [
      TOKENS,
      "if (type === 'session-lost') return;",
      'if (type !== undefined) return;',
    ]),
  ),
  floors(
    mutant('tokens are made by the old floor until the new one has been read', [
      TOKENS,
      'this.#known = undefined;\n    void this.#read();',
      'void this.#read();',
    ]),
  ),
  floors(
    mutant('a floor counts for whoever was in the queue before it, too', [
      'queue/floor-node.ts',
      'if (since < czxid) return floor + czxid;',
      'return floor + czxid;',
    ]),
  ),
  mutant('one folder that may not be read hides all locks', [
    'locks/inspection.ts',
    'if (!(error instanceof ServerError)) throw error;\n          return',
    'if (error) throw error;\n          return',
  ]),
  killed(
    INTAKE_TEST,
    mutant('what a client asked before it left is done in one turn', [
      INTAKE,
      '(handledAny && nowMs >= endMs)',
      '(handledAny && nowMs >= endMs && !connection.departed)',
    ]),
  ),
  killed(
    INTAKE_TEST,
    mutant('what a client asked before it left is done behind what it sees once it is back', [
      'server/server-core.ts',
      'if (session.connection) {',
      'if (session.connection && !session.connection.departed) {',
    ]),
  ),
  killed(
    INTAKE_TEST,
    mutant('a dear request is done in one turn', [
      INTAKE,
      'while (!this.#teller.busy && this.#state.clock.nowMs() < endMs)',
      'while (!this.#teller.busy)',
    ]),
  ),
  killed(
    INTAKE_TEST,
    mutant('a request is handled before the events of a write are told', [
      INTAKE,
      'const turnIsOver = this.#teller.busy || ',
      'const turnIsOver = ',
    ]),
  ),
  killed(
    INTAKE_TEST,
    mutant(
      'many are told of much in one turn',
      ['server/event-teller.ts', 'if (this.busy || weight >= WEIGHT_MAX)', 'if (this.busy)'],
      ['server/event-teller.ts', 'if (weight >= room) {', 'if (weight < 0) {'],
    ),
  ),
  killed(
    INTAKE_TEST,
    mutant('an event comes into the middle of an answer', [
      'server/client-output.ts',
      'if (connection.eventsLater) {',
      'if (connection.eventsLater && connection.over) {',
    ]),
  ),
  killed(
    INTAKE_TEST,
    mutant('a session takes all its nodes with it in one turn', [
      'server/session-ends.ts',
      'const ENDED_AT_ONCE = 256;',
      'const ENDED_AT_ONCE = 1_000_000;',
    ]),
  ),
  killed(
    INTAKE_TEST,
    mutant('nobody goes on with the end of a session after a crash', [
      'server/session-ends.ts',
      'if (!state.sessions.get(sessionId)) this.unfinished.add(sessionId);',
      'if (state.sessions.get(sessionId)?.over) this.unfinished.add(sessionId);',
    ]),
  ),
  killed(
    'simulation/storage/store.test.ts',
    mutant('no snapshot follows a start that had long logs to read', [
      'server/storage/store.ts',
      'if (this.#snapshotIsDue) this.#startPumping();',
      '',
    ]),
  ),
  killed(
    'src/server/tcp-admin.test.ts',
    mutant('connections that ask nothing keep out whoever asks for health', [
      'server/tcp-admin.ts',
      '(idle ?? socket).destroy();\n      if (!idle) return;',
      'socket.destroy();\n      if (idle !== socket) return;',
    ]),
  ),
];
