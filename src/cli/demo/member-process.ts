// One of the programs of the tour, in a process of its own: takes a lock when it is told to, and writes under it again
// and again without ever looking at its lease, as a program does that trusts its lock.
import process from 'node:process';
import { systemClock } from '../../base/clock.ts';
import { connect, type Holdfast } from '../../locks/holdfast.ts';
import type { LockLease } from '../../locks/lock-lease.ts';
import type { MemberMessage, StageMessage } from './member-messages.ts';

const WRITE_EVERY_MS = 50;

let holdfast: Holdfast | undefined;
let lockName = '';
let lease: LockLease | undefined;
let stopWriting = () => {};

const tell = (message: MemberMessage) => process.connected && process.send!(message);

process.on('disconnect', () => process.exit()); // Whoever started it is gone.
process.on('SIGINT', () => {}); // Ctrl-C goes to all of them: the stage ends its members itself.
process.on('message', (message: StageMessage) => {
  obey(message).catch((error: Error) => tell({ kind: 'failed', message: error.message }));
});

async function obey(message: StageMessage): Promise<void> {
  if (message.kind === 'connect') {
    holdfast = await connect(message.options);
    lockName = message.lockName;
    tell({ kind: 'connected', sessionTimeoutMs: holdfast.zk.session.timeoutMs });
  } else if (message.kind === 'acquire') {
    await hold();
  } else if (message.kind === 'release') {
    stopWriting();
    await lease?.release();
    tell({ kind: 'released' });
  } else {
    stopWriting();
  }
}

async function hold(): Promise<void> {
  const mutex = holdfast!.mutex(lockName);
  const off = mutex.on('waiting', () => tell({ kind: 'waiting' }));
  lease = await mutex.acquire({ reason: 'the tour' });
  off();
  const token = String(lease.token);
  const { signal } = lease;
  signal.addEventListener('abort', () => tell({ kind: 'lost', message: (signal.reason as Error).message }), {
    once: true,
  });
  tell({ kind: 'held', token });
  const write = () => {
    tell({ kind: 'write', token });
    const cancel = systemClock.at(systemClock.nowMs() + WRITE_EVERY_MS, write);
    stopWriting = cancel;
  };
  write();
}
