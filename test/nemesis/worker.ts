import type { ChildProcess } from 'node:child_process';
import { FaultProxy } from '../../src/testing.ts';
import { until } from '../support/until.ts';
import type { ZooKeeperProcess } from '../support/zookeeper-process.ts';
import { exitOf, killChild, startChild } from './child-process.ts';
import { nowMs, type Recorder } from './recorder.ts';
import { CHROOT, type WorkerCommand, type WorkerOrders, type WorkerReport } from './scene.ts';

const SESSIONS = 2;
const START_TIMEOUT_MS = 60_000;

/** What all workers of a run are told. */
export interface WorkerPlace {
  readonly folder: string;
  readonly servers: readonly ZooKeeperProcess[];
  readonly sessionTimeoutMs: number;
  readonly resourcePort: number;
  readonly recorder: Recorder;
  readonly control: Recorder;
  /** A worker has said that something happened to it that must not. */
  failed(error: string): void;
}

/**
 * The place of one worker process, which is killed and started again, each time under another name. Between each of its
 * sessions and each server stands a proxy.
 */
export class Worker implements AsyncDisposable {
  readonly slot: number;
  /** For each session, one for each server. */
  readonly proxies: readonly (readonly FaultProxy[])[];
  readonly #place: WorkerPlace;
  readonly #random: () => number;
  readonly #holds = new Set<string>();
  #child: ChildProcess | undefined;
  #life = 0;
  #ready = false;
  #drained = false;
  #paused = false;
  #grantsBefore = 0;
  #grantsNow = 0;

  private constructor(slot: number, place: WorkerPlace, proxies: FaultProxy[][], random: () => number) {
    this.slot = slot;
    this.proxies = proxies;
    this.#place = place;
    this.#random = random;
  }

  static async create(slot: number, place: WorkerPlace, random: () => number): Promise<Worker> {
    const proxies = Array.from({ length: SESSIONS }, () =>
      Promise.all(place.servers.map((target) => FaultProxy.start({ target }))),
    );
    return new Worker(slot, place, await Promise.all(proxies), random);
  }

  /** What the history calls the process that runs now. */
  get client(): string {
    return `w${this.slot}.${this.#life}`;
  }

  /** Grants of all its lives. */
  get grants(): number {
    return this.#grantsBefore + this.#grantsNow;
  }

  get paused(): boolean {
    return this.#paused;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  holds(lock: string): boolean {
    return this.#holds.has(lock);
  }

  start(): void {
    this.#life++;
    this.#ready = false;
    const { folder, sessionTimeoutMs, resourcePort } = this.#place;
    const orders: WorkerOrders = {
      client: this.client,
      slot: this.slot,
      seed: this.#random(),
      sessions: this.proxies.map(
        (proxies) => `${proxies.map(({ connectString }) => connectString).join(',')}${CHROOT}`,
      ),
      sessionTimeoutMs,
      resourcePort,
      historyFile: `${folder}/${this.client}.jsonl`,
      controlFile: `${folder}/${this.client}.control.jsonl`,
    };
    const child = startChild('./worker-process.ts', JSON.stringify(orders));
    this.#child = child;
    child.on('message', (message: WorkerReport) => {
      if (this.#child === child) this.#hear(message);
    });
    child.once('exit', (code, signal) => {
      if (this.#child === child) this.#place.failed(`${this.client} ended by itself (${code ?? signal})`);
    });
  }

  async ready(): Promise<void> {
    await until(`${this.client} to be ready`, () => this.#ready, START_TIMEOUT_MS);
  }

  /** Kills it; its name is not used again. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child) return;
    const ended = { kind: 'ended', atMs: nowMs(), client: this.client, how: 'killed' } as const;
    this.#place.recorder.record(ended);
    this.#place.control.record(ended);
    this.#forget();
    await killChild(child);
  }

  pause(): void {
    if (!this.#child) return;
    this.#child.kill('SIGSTOP');
    this.#paused = true;
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#paused = false;
  }

  /** Keeps its event loop busy. */
  block(forMs: number): void {
    this.#command({ kind: 'block', forMs });
  }

  /** Makes no new attempts; resolves when those under way are over. */
  async drain(timeoutMs: number): Promise<void> {
    this.#command({ kind: 'drain' });
    await until(`${this.client} to be done`, () => this.#drained, timeoutMs);
  }

  /** Ends it in an orderly way. */
  async close(): Promise<void> {
    const child = this.#child;
    if (!child) return;
    this.#command({ kind: 'close' });
    this.#forget();
    await exitOf(child);
  }

  /** Makes its network well again. */
  healNetwork(): void {
    healProxies(this.proxies.flat());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    this.#forget();
    if (child) await killChild(child);
    await Promise.all(this.proxies.flat().map((proxy) => proxy[Symbol.asyncDispose]()));
  }

  #hear(message: WorkerReport): void {
    if (message.kind === 'ready') this.#ready = true;
    else if (message.kind === 'drained') this.#drained = true;
    else if (message.kind === 'progress') this.#grantsNow = message.grants;
    else if (message.kind === 'failed') this.#place.failed(`${this.client}: ${message.error}`);
    else if (message.held) this.#holds.add(message.lock);
    else this.#holds.delete(message.lock);
  }

  #command(command: WorkerCommand): void {
    this.#child!.send(command);
  }

  #forget(): void {
    this.#child = undefined;
    this.#paused = false;
    this.#grantsBefore += this.#grantsNow;
    this.#grantsNow = 0;
    this.#holds.clear();
  }
}

/** Makes links well again. Connections that have lost bytes are closed: nothing can go on behind a gap. */
export function healProxies(proxies: readonly FaultProxy[]): void {
  for (const proxy of proxies) {
    const { dropped } = proxy.faults;
    if (dropped['to-server'] || dropped['to-client']) proxy.resetAll();
    proxy.heal();
  }
}
