/** What is needed of a contender: its node's name, the transaction that made it, its session. */
interface Contender {
  readonly id: string;
  readonly token: bigint;
  readonly session: bigint;
}

/** A node of a semaphore: its contender, and what the node says about the semaphore. */
export interface SemaphoreNode<C extends Contender> {
  readonly info: C;
  readonly facts: SemaphoreFacts;
}

/** What a node of Holdfast's says about its semaphore; one of Curator's says nothing, nor one that was written over. */
export interface SemaphoreFacts {
  /** How many permits the semaphore has. */
  readonly permits?: number;
  /** Of a lease: the name of the turnstile's node under which it was made. */
  readonly turnstile?: string;
}

/** Adds the facts to the description of a node's owner, which is a JSON object. */
export function withFacts(owner: string, facts: SemaphoreFacts): string {
  return `${owner.slice(0, -1)},${JSON.stringify(facts).slice(1)}`;
}

/** Reads what any program may have written: a fact that is not there, or is none, is left out. */
export function factsIn(data: Uint8Array | null): SemaphoreFacts {
  try {
    const { permits, turnstile } = JSON.parse(Buffer.from(data ?? []).toString('utf8'));
    return {
      ...(Number.isSafeInteger(permits) && permits > 0 && { permits }),
      ...(typeof turnstile === 'string' && { turnstile }),
    };
  } catch {
    return {};
  }
}

/** The leases that one contender has made in one transaction: it holds all of them, or none. */
interface LeaseGroup<C extends Contender> {
  readonly nodes: SemaphoreNode<C>[];
  /** Where the last of them is in the order of all leases. */
  lastIndex: number;
}

/**
 * Divides the contenders of a semaphore, both lists in the order of their turns: those that hold, and those that wait.
 *
 *   1. A contender makes its leases while it is first at the turnstile, and holds once all of them are among the first
 *      N, where N is the number of permits. Until then its leases are pending.
 *   2. It leaves the turnstile after that: for a moment one that holds has a node there, by whose name it is told.
 *   3. Where no node says N, all contenders are of Curator's: a lease is taken for pending if it is the newest of the
 *      session that is first at the turnstile, and younger than that session's node there. No session makes a second
 *      lease before its first one is granted.
 *
 * A session alone decides nothing: it may have several tasks, of which some hold and some wait.
 */
export function semaphoreView<C extends Contender>(semaphore: {
  readonly leases: readonly SemaphoreNode<C>[];
  readonly turnstile: readonly SemaphoreNode<C>[];
  /** Nodes beside the leases that are no leases: each takes a permit all the same. */
  readonly foreignCount: number;
}): { readonly holders: C[]; readonly queue: C[] } {
  const { leases, turnstile, foreignCount } = semaphore;
  const first = turnstile[0]?.info;
  const agreed = permitsIn([...turnstile, ...leases]);
  const newest = leases
    .filter(({ info }) => info.session === first?.session && info.token > first.token)
    .reduce((token, { info }) => (info.token > token ? info.token : token), 0n);
  const holders = new Set<C>();
  const passed = new Set<string>();
  for (const { nodes, lastIndex } of groupsOf(leases)) {
    const permits = permitsIn(nodes) ?? agreed;
    const holds =
      permits === undefined ? nodes[0]!.info.token !== newest : foreignCount + lastIndex < permits;
    if (!holds) continue;
    for (const { info, facts } of nodes) {
      holders.add(info);
      if (facts.turnstile !== undefined) passed.add(facts.turnstile);
    }
  }
  return {
    holders: leases.map(({ info }) => info).filter((info) => holders.has(info)),
    queue: turnstile.map(({ info }) => info).filter(({ id }) => !passed.has(id)),
  };
}

function permitsIn(nodes: readonly SemaphoreNode<Contender>[]): number | undefined {
  return nodes.find(({ facts }) => facts.permits !== undefined)?.facts.permits;
}

function groupsOf<C extends Contender>(leases: readonly SemaphoreNode<C>[]): Iterable<LeaseGroup<C>> {
  const groups = new Map<bigint, LeaseGroup<C>>();
  for (const [index, node] of leases.entries()) {
    const { token } = node.info;
    const group = groups.get(token) ?? { nodes: [], lastIndex: index };
    group.nodes.push(node);
    group.lastIndex = index;
    groups.set(token, group);
  }
  return groups.values();
}
