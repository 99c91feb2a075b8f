import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { describe, expect, test } from 'vitest';
import { FrameDecoder } from '../../src/protocol/frame-decoder.ts';
import { Connect, Connected, SESSION_PASSWORD_BYTES } from '../../src/protocol/handshake.ts';
import { JuteReader } from '../../src/protocol/jute-reader.ts';
import { operations } from '../../src/protocol/operations.ts';
import { ReplyHeader } from '../../src/protocol/records.ts';
import { connect } from '../../src/zookeeper.ts';
import { frameBytes } from '../support/raw-server.ts';
import { until } from '../support/until.ts';
import { startEnsemble } from '../support/zookeeper-ensemble.ts';
import { startZooKeeper, type ZooKeeperProcess } from '../support/zookeeper-process.ts';

// What ADR 5 stands on: a server that was not there when a session was resumed counts with what it was granted at first.

const FIRST_MS = 1_000;
const SECOND_MS = 60_000;
/** Far from both, also on a loaded machine. */
const BETWEEN_MS = 20_000;
const OPTIONS = { tickTimeMs: 250, maxSessionTimeoutMs: SECOND_MS };
const NODE = '/ephemeral';

/** One connection, made and answered by hand. */
class Peer implements Disposable {
  readonly #socket;
  readonly #frames = new FrameDecoder(10_000);
  readonly #received: Buffer[] = [];

  constructor({ host, port }: ZooKeeperProcess) {
    this.#socket = connectTcp(port, host);
  }

  async ask(request: Buffer): Promise<JuteReader> {
    this.#socket.write(request);
    while (this.#received.length === 0) {
      const [chunk] = await once(this.#socket, 'data');
      this.#received.push(...this.#frames.push(chunk));
    }
    return new JuteReader(this.#received.shift()!);
  }

  async handshake(timeOut: number, before?: { sessionId: bigint; passwd: Uint8Array | null }) {
    const { sessionId, passwd } = before ?? { sessionId: 0n, passwd: Buffer.alloc(SESSION_PASSWORD_BYTES) };
    const wanted = { protocolVersion: 0, lastZxidSeen: 0n, timeOut, sessionId, passwd, readOnly: false };
    return Connected.read(await this.ask(frameBytes((out) => Connect.write(out, wanted))));
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** Leaves a node of a session that was granted a second at first, and a minute when it was resumed. */
async function leaveNode(server: ZooKeeperProcess): Promise<void> {
  using first = new Peer(server);
  const granted = await first.handshake(FIRST_MS);
  const request = {
    path: NODE,
    data: null,
    acl: [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }],
    flags: 1,
  };
  const made = await first.ask(
    frameBytes((out) => {
      out.int(1);
      out.int(operations.create2.opcode);
      operations.create2.request.write(out, request);
    }),
  );
  expect(ReplyHeader.read(made)).toMatchObject({ xid: 1, err: 0 });
  using second = new Peer(server);
  const resumed = await second.handshake(SECOND_MS, granted);
  expect([granted.timeOut, resumed.timeOut]).toEqual([FIRST_MS, SECOND_MS]);
}

async function nodeGoes(connectString: string): Promise<void> {
  await using zk = await connect(connectString, { timeoutMs: 30_000, sessionTimeoutMs: 30_000 });
  await until('the end of the session', async () => !(await zk.exists(NODE)), BETWEEN_MS);
}

describe('a session that was granted more when it was resumed than at first', () => {
  test('has the first timeout again after a restart of its server', async () => {
    await using server = await startZooKeeper(OPTIONS);
    await leaveNode(server);
    await server.restart();
    await nodeGoes(server.connectString);
  });

  test('has the first timeout again under a new leader', async () => {
    await using ensemble = await startEnsemble(OPTIONS);
    const leader = await ensemble.leader();
    const [follower] = await ensemble.followers();
    await leaveNode(follower!);
    await leader.kill();
    await nodeGoes(ensemble.connectString);
  });
});
