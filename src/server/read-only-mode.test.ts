import { describe, expect, test } from 'vitest';
import { seededRandom } from '../base/random.ts';
import { Connect, Connected } from '../protocol/handshake.ts';
import { JuteReader } from '../protocol/jute-reader.ts';
import { JuteWriter } from '../protocol/jute-writer.ts';
import { operations } from '../protocol/operations.ts';
import { ReplyHeader, RequestHeader } from '../protocol/records.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { ServerLink } from './server-connection.ts';
import { ServerCore } from './server-core.ts';
import type { Transaction } from './transaction.ts';

const NOT_READ_ONLY = -119;

/** A server whose disk does as it is told. */
class World {
  readonly clock = new VirtualClock();
  readonly journal: Transaction[] = [];
  readonly core = new ServerCore({
    clock: this.clock,
    random: seededRandom(1),
    journal: { append: (transaction) => void this.journal.push(transaction) },
  });

  written(): void {
    this.core.durable(this.core.zxid);
  }

  async pass(durationMs: number): Promise<void> {
    await this.clock.advance(durationMs);
    this.core.tick();
  }

  client(options: { readOnly?: boolean } = {}): Client {
    const client = new Client(this.core);
    client.send((out) =>
      Connect.write(out, {
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeOut: 4_000,
        sessionId: 0n,
        passwd: Buffer.alloc(16),
        readOnly: options.readOnly ?? false,
      }),
    );
    return client;
  }
}

class Client {
  readonly received: Buffer[] = [];
  destroyed = false;
  readonly #core: ServerCore;
  readonly #connection: NonNullable<ReturnType<ServerCore['accept']>>;

  constructor(core: ServerCore) {
    this.#core = core;
    const link: ServerLink = {
      write: (bytes) => void this.received.push(bytes),
      end: () => {},
      destroy: () => {
        this.destroyed = true;
      },
      pause: () => {},
      resume: () => {},
      bufferedBytes: 0,
    };
    this.#connection = core.accept(link, { address: '127.0.0.1', port: 1, identities: [] })!;
  }

  send(write: (out: JuteWriter) => void): void {
    const out = new JuteWriter();
    const mark = out.beginFrame();
    write(out);
    out.endFrame(mark);
    this.#core.receive(this.#connection, Buffer.from(out.take()));
  }

  /** Sends a request, and returns the error of the answer, if one has come. */
  ask(type: number, body: (out: JuteWriter) => void = () => {}): number | undefined {
    this.received.length = 0;
    this.send((out) => {
      RequestHeader.write(out, { xid: 1, type });
      body(out);
    });
    const bytes = Buffer.concat(this.received);
    return bytes.byteLength === 0 ? undefined : ReplyHeader.read(new JuteReader(bytes.subarray(4))).err;
  }

  create(path: string, flags: number): number | undefined {
    const acl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
    return this.ask(operations.create.opcode, (out) =>
      operations.create.request.write(out, { path, data: null, acl, flags }),
    );
  }

  granted(): ReturnType<typeof Connected.read> {
    return Connected.read(new JuteReader(Buffer.concat(this.received).subarray(4)));
  }
}

describe('while the disk takes nothing', () => {
  test('what it did not take has never happened, and whoever waits for it is cut off', () => {
    const world = new World();
    const [writer, other] = [world.client(), world.client()];
    world.written();
    expect(writer.create('/a', 0)).toBeUndefined(); // Held back until it is on disk.
    world.core.storeFailed(new Error('no space left on device'));
    expect(world.core.tree.get('/a')).toBeUndefined();
    expect([writer.destroyed, other.destroyed]).toEqual([true, false]);
  });

  test('writes are refused, closing a session too, and nothing is journalled or changed', async () => {
    const world = new World();
    const [owner, other] = [world.client(), world.client()];
    owner.create('/e', 1);
    world.written();
    world.core.storeFailed(new Error('no space left on device'));
    const before = world.journal.length;
    expect(other.create('/b', 0)).toBe(NOT_READ_ONLY);
    expect(owner.ask(operations.closeSession.opcode)).toBe(NOT_READ_ONLY);
    await world.pass(60_000); // Far beyond every session's end.
    expect(world.core.tree.get('/e')).toBeDefined();
    expect(world.core.sessions.count).toBe(2);
    expect(world.journal).toHaveLength(before);

    world.core.storeMended();
    await world.pass(5_000);
    expect(world.core.sessions.count).toBe(0);
    expect(world.core.tree.get('/e')).toBeUndefined();
    expect(world.journal.slice(before).map(({ kind }) => kind)).toEqual(['close-session', 'close-session']);
  });

  test('a new session is for those who allow a read-only one, and is kept once that can be', () => {
    const world = new World();
    world.core.storeFailed(new Error('no space left on device'));
    expect(world.client().destroyed).toBe(true);
    const reader = world.client({ readOnly: true });
    expect(reader.granted()).toMatchObject({ readOnly: true, timeOut: 4_000 });
    expect(world.journal).toHaveLength(0);
    world.core.storeMended();
    expect(world.journal).toMatchObject([{ kind: 'open-session', sessionId: reader.granted().sessionId }]);
    world.written();
    expect(reader.create('/a', 1)).toBeUndefined();
    world.written();
    expect(world.core.tree.get('/a')).toBeDefined();
  });

  test('a read-only session that ends leaves nothing behind', async () => {
    const world = new World();
    world.core.storeFailed(new Error('no space left on device'));
    const [leaving, silent] = [world.client({ readOnly: true }), world.client({ readOnly: true })];
    expect(leaving.ask(operations.closeSession.opcode)).toBe(0);
    expect(world.core.sessions.count).toBe(1);
    await world.pass(10_000);
    expect(world.core.sessions.count).toBe(0);
    expect(silent.destroyed).toBe(true);
    expect(world.journal).toHaveLength(0);
  });
});
