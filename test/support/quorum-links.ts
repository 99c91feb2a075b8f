import { FaultProxy } from '../../src/testing.ts';
import type { QuorumMember } from './zookeeper-process.ts';

const HOST = '127.0.0.1';

/**
 * Proxies between the members of an ensemble, one for each ordered pair, so that a member can be cut off from the
 * others while its clients still reach it.
 *
 * They carry what a follower and its leader say to each other. Elections go by connections of their own, which members
 * make to the addresses that they tell each other: a member that is cut off hears who leads, and cannot reach it.
 */
export class QuorumLinks implements AsyncDisposable {
  readonly #links: readonly Link[];

  private constructor(links: readonly Link[]) {
    this.#links = links;
  }

  static async between(members: readonly QuorumMember[]): Promise<QuorumLinks> {
    const pairs = members.flatMap((from) =>
      members.filter((to) => to !== from).map((to) => [from, to] as const),
    );
    const links = pairs.map(async ([from, to]): Promise<Link> => {
      const target = { host: HOST, port: to.quorumPort };
      return { fromId: from.id, toId: to.id, proxy: await FaultProxy.start({ target }) };
    });
    return new QuorumLinks(await Promise.all(links));
  }

  /** The members as one of them is to see them: itself where it is, the others behind their proxies. */
  asSeenBy(self: QuorumMember, members: readonly QuorumMember[]): QuorumMember[] {
    return members.map((member) => {
      const link = this.#links.find(({ fromId, toId }) => fromId === self.id && toId === member.id);
      return link ? { ...member, quorumPort: link.proxy.port } : member;
    });
  }

  /** Nothing passes between this member and the others, in either direction, and no connection ends by it. */
  isolate(id: number): void {
    for (const { fromId, toId, proxy } of this.#links) {
      if (fromId === id || toId === id) proxy.blackhole('both');
    }
  }

  /** Ends the connections that have lost bytes, and lets new ones through. */
  heal(): void {
    for (const { proxy } of this.#links) {
      const { dropped } = proxy.faults;
      if (dropped['to-server'] || dropped['to-client']) proxy.resetAll();
      proxy.heal();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#links.map(({ proxy }) => proxy[Symbol.asyncDispose]()));
  }
}

interface Link {
  readonly fromId: number;
  readonly toId: number;
  readonly proxy: FaultProxy;
}
