// The servers that are measured, under one face, each in a process of its own.
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ServerOptions } from 'holdfast/server';
import { type ZooKeeperOptions, ZooKeeperProcess } from '../../test/support/zookeeper-process.ts';
import type { EmbeddedAnswer, EmbeddedOrder } from './embedded-process.ts';

const CLOCK_TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;
export const TICK_MS = 2_000;
const SESSION_TIMEOUT_MS_MAX = 60_000;
const START_MS_MAX = 120_000;
/** What suits a throughput test on few cores; a JVM sizes itself for more than it has here. */
export const jvmFlags = ['-Xms512m', '-Xmx512m', '-XX:+UseSerialGC'];
export const netty = { 'zookeeper.serverCnxnFactory': 'org.apache.zookeeper.server.NettyServerCnxnFactory' };

/** A server that is up. */
export interface System {
  readonly name: string;
  readonly connectString: string;
  readonly pid: number;
  /** How long it took from starting its process to serving. */
  readonly startedInMs: number;
  /** What is in use after a full collection: for Node with the buffers outside the heap, for Java the heap. */
  liveBytes(): Promise<number>;
  /** Ends it in an orderly way, keeping its data. */
  stop(): Promise<void>;
}

export async function startEmbedded(
  name: string,
  options: ServerOptions,
  nodeFlags: string[] = [],
): Promise<System> {
  const startedAtMs = performance.now();
  const child = fork(fileURLToPath(new URL('./embedded-process.ts', import.meta.url)), {
    execArgv: [...process.execArgv, '--expose-gc', ...nodeFlags],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const limits = { tickMs: TICK_MS, sessionTimeoutMsMax: SESSION_TIMEOUT_MS_MAX, ...options.limits };
  const listening = await ask(child, { kind: 'start', options: { ...options, limits } }, 'listening');
  return {
    name,
    connectString: `127.0.0.1:${listening.port}`,
    pid: child.pid!,
    startedInMs: performance.now() - startedAtMs,
    liveBytes: async () => (await ask(child, { kind: 'tell-memory' }, 'memory')).liveBytes,
    async stop() {
      child.send({ kind: 'stop' } satisfies EmbeddedOrder);
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** A real one; `server.stop()` keeps its data, disposing of `process` does not. */
export async function startReal(
  name: string,
  options: ZooKeeperOptions,
): Promise<System & { readonly process: ZooKeeperProcess }> {
  const process = await ZooKeeperProcess.create({
    tickTimeMs: TICK_MS,
    maxSessionTimeoutMs: SESSION_TIMEOUT_MS_MAX,
    jvmFlags,
    ...options,
  });
  return serveAgain(name, process);
}

/** Starts a real server that is down, on the data it has. */
export async function serveAgain(
  name: string,
  process: ZooKeeperProcess,
): Promise<System & { readonly process: ZooKeeperProcess }> {
  const startedAtMs = performance.now();
  await process.start();
  await process.waitUntilServing(START_MS_MAX);
  return {
    name,
    process,
    connectString: process.connectString,
    pid: process.pid!,
    startedInMs: performance.now() - startedAtMs,
    liveBytes: () => javaHeapBytes(process.pid!),
    stop: () => process.stop(),
  };
}

/** A histogram of the live objects collects the others first. */
async function javaHeapBytes(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('jcmd', [String(pid), 'GC.class_histogram'], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return Number(/^Total\s+\d+\s+(\d+)/m.exec(stdout)?.[1]);
}

async function ask<K extends EmbeddedAnswer['kind']>(
  child: ChildProcess,
  order: EmbeddedOrder,
  kind: K,
): Promise<Extract<EmbeddedAnswer, { kind: K }>> {
  const answered = new Promise<EmbeddedAnswer>((resolve, reject) => {
    const onExit = (code: number | null) =>
      reject(new Error(`the embedded server's process ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (value: EmbeddedAnswer) => {
      child.off('exit', onExit);
      resolve(value);
    });
  });
  child.send(order);
  const answer = await answered;
  if (answer.kind !== kind) throw new Error(`asked for ${kind}, was told ${answer.kind}`);
  return answer as Extract<EmbeddedAnswer, { kind: K }>;
}

/** What a process and all its threads have used of the processors so far. */
export function cpuMsOf(pid: number): number {
  // The name is in brackets and may hold anything; user and system time are the 12th and 13th field behind it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / CLOCK_TICKS_PER_SECOND;
}

export function residentBytesOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
}
