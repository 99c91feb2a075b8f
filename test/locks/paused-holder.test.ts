import { type ChildProcess, fork } from 'node:child_process';
import { describe, expect } from 'vitest';
import { Fence, StaleTokenError } from '../../src/holdfast.ts';
import { type LockWorkspace, onEveryLockBackend } from '../support/lock-backends.ts';
import { until } from '../support/until.ts';

const HOLDER_FILE = new URL('./holder-process.ts', import.meta.url).pathname;

/** A process that holds the lock, as the resource it writes to sees it. */
class Holder implements AsyncDisposable {
  token: bigint | undefined;
  lost = false;
  readonly outcomes: ('written' | 'refused')[] = [];
  readonly #child: ChildProcess;

  constructor({ servers, root }: LockWorkspace, fence: Fence) {
    this.#child = fork(HOLDER_FILE, [`${servers.connectString}${root}`], {
      execArgv: ['--import', 'tsx'],
    });
    this.#child.on('message', (message: { kind: string; token: string }) => {
      if (message.kind === 'held') this.token = BigInt(message.token);
      if (message.kind === 'lost') this.lost = true;
      if (message.kind === 'write') this.#write(fence, BigInt(message.token));
    });
  }

  pause(): void {
    process.kill(this.#child.pid!, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.#child.pid!, 'SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
  }

  #write(fence: Fence, token: bigint): void {
    try {
      fence.admit(token);
      this.outcomes.push('written');
    } catch (error) {
      expect(error).toBeInstanceOf(StaleTokenError);
      this.outcomes.push('refused');
    }
  }
}

describe('a holder that is stopped in the middle of its work', () => {
  // What no lock can prevent, and only the resource can
  onEveryLockBackend(
    'and wakes up later: its late writes are refused by the fence',
    async (workspace) => {
      const fence = new Fence();
      await using first = new Holder(workspace, fence);
      await until('the first to write', () => first.outcomes.length > 0);
      await using second = new Holder(workspace, fence);
      await workspace.untilEntries('account', 2);
      expect(second.token).toBeUndefined();
      first.pause();
      await until('the second to write', () => second.outcomes.length > 0);
      expect(second.token).toBeGreaterThan(first.token!);
      const written = first.outcomes.length;
      first.resume();
      await until('the first to try, and to be told', () => first.outcomes.includes('refused') && first.lost);
      // What was on its way when it was stopped may come first; nothing after the second one's first write.
      expect(first.outcomes.slice(written)).not.toContain('written');
      expect(second.outcomes).not.toContain('refused');
      expect(fence.highest).toBe(second.token);
    },
    ['ZooKeeper standalone'],
  );
});
