// The benchmarks are not run here: what is tested is how they count, print and draw.
import { describe, expect, test } from 'vitest';
import { barChart, growthChart, lineChart, ratesChart } from '../../bench/locks/charts.ts';
import { parseChoices, UnknownNameError } from '../../bench/locks/choices.ts';
import { CONTESTANTS } from '../../bench/locks/contestants.ts';
import { lineOf } from '../../bench/locks/orders.ts';
import { partsOf } from '../../bench/locks/report.ts';
import { requestCounters } from '../../bench/locks/request-counters.ts';
import { earlierRuns, type GrowthResult, medianRatios, type RateResult } from '../../bench/locks/results.ts';
import { type GrowthScenario, type RateScenario, SCENARIOS } from '../../bench/locks/scenarios.ts';
import { growthTable, ratesTable, rateTable } from '../../bench/locks/tables.ts';
import { median, ratios, spreadOf } from '../../bench/statistics.ts';
import { withGeneratedPart } from '../../scripts/generated-part.ts';

const scenarioOf = <S>(id: string) => SCENARIOS.find((scenario) => scenario.id === id) as S;
const solo = scenarioOf<RateScenario>('solo');
const waiters = scenarioOf<GrowthScenario>('waiters');
const surroundings = { date: '2026-11-16T12:00:00.000Z', quick: true, cores: 2, node: '20.20.2' };
const row = (contestant: string, rates: readonly number[]) => ({
  contestant,
  rates,
  acquireMs: { p50: 0.5, p99: 12.34 },
  clientCpuUs: 200.4,
  serverCpuUs: 300.6,
  traffic: { requests: 3, bytes: 573.4 },
});
const soloResult: RateResult = {
  ...surroundings,
  kind: 'rate',
  scenario: 'solo',
  rows: [row('holdfast', [300, 200, 100]), row('curator', [100, 100, 100])],
  absent: [
    { contestant: 'kazoo', reason: 'is elsewhere' },
    { contestant: 'etcd3', reason: 'is elsewhere' },
  ],
  earlier: [],
};
const growthResult: GrowthResult = {
  ...surroundings,
  kind: 'growth',
  scenario: 'waiters',
  rows: [
    {
      contestant: 'holdfast',
      points: [
        { waiters: 10, ms: [1, 3, 2], requests: 1, bytes: 700 },
        { waiters: 5_000, ms: [4], requests: 1, bytes: 700 },
      ],
    },
    { contestant: 'kazoo', points: [{ waiters: 10, ms: [8], requests: 2, bytes: 30_000 }] },
  ],
  absent: [],
};

describe('statistics', () => {
  test.each([
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[10, 9], 9.5],
    [[7], 7],
    [[], Number.NaN],
  ])('the median of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  test('a ratio is of one round, not of two medians', () => {
    // Both were twice as slow in the second round: that is in none of the ratios.
    expect(ratios([20, 10, 20], [10, 5, 10])).toEqual([2, 2, 2]);
    expect(() => ratios([1, 2], [1])).toThrow(RangeError);
  });

  test('a spread has the middle and both ends', () => {
    expect(spreadOf([5, 1, 3])).toEqual({ median: 3, min: 1, max: 5 });
  });
});

describe('the command line', () => {
  test('takes everything if nothing is said, and leaves the slowest out of a quick run', () => {
    expect(parseChoices([])).toMatchObject({ quick: false, scenarios: SCENARIOS, contestants: CONTESTANTS });
    const quick = parseChoices(['--quick']);
    expect(quick.scenarios.map(({ id }) => id)).not.toContain('crowd-1000');
    expect(quick.scenarios.map(({ id }) => id)).toContain('crowd-200');
  });

  test('filters by names, in whatever order and form they come', () => {
    const { scenarios, contestants } = parseChoices(['--only', 'waiters,solo', '--peers=kazoo,holdfast']);
    expect(scenarios.map(({ id }) => id)).toEqual(['solo', 'waiters']);
    expect(contestants.map(({ id }) => id)).toEqual(['holdfast', 'kazoo']);
  });

  test.each([
    [['--only', 'sol'], '--only', 'sol'],
    [['--only', 'solo,paralel'], '--only', 'paralel'],
    [['--only'], '--only', ''],
    [['--peers', 'zookeeper'], '--peers', 'zookeeper'],
    [['--fast'], 'bench', '--fast'],
    [['solo'], 'bench', 'solo'],
  ])('refuses %j', (args, option, given) => {
    expect(() => parseChoices(args)).toThrow(UnknownNameError);
    expect(() => parseChoices(args)).toThrow(
      expect.objectContaining({ code: 'BENCH_UNKNOWN_NAME', option, given }),
    );
  });

  test('every scenario has somebody to be compared with', () => {
    for (const scenario of SCENARIOS) {
      const present = CONTESTANTS.filter((contestant) => contestant.absence(scenario) === undefined);
      expect(present.map(({ id }) => id)).toContain(scenario.baseline);
      expect(present.length).toBeGreaterThan(1);
    }
  });
});

test('an order is a line of words', () => {
  expect(lineOf({ order: 'queue', name: 'w-1', sessions: 8, waiters: 10, handOvers: 5 })).toBe(
    'order=queue name=w-1 sessions=8 waiters=10 handOvers=5',
  );
});

describe('requests are counted on the wire', () => {
  const frame = (opcode: number, length = 8) => {
    const bytes = Buffer.alloc(4 + length);
    bytes.writeInt32BE(length, 0);
    bytes.writeInt32BE(opcode, 8);
    return bytes;
  };
  const http2 = (type: number, length: number) => {
    const bytes = Buffer.alloc(9 + length);
    bytes.writeUIntBE(length, 0, 3);
    bytes[3] = type;
    return bytes;
  };
  const streams = {
    // The session's opening and the ping are none; create, getChildren and delete are.
    zookeeper: { bytes: [frame(0, 44), frame(15, 60), frame(8), frame(11), frame(2, 20)], requests: 3 },
    redis: {
      bytes: [Buffer.from('*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$2\r\n*1\r\n$0\r\n\r\n')],
      requests: 2,
    },
    // Settings, headers, data, an empty end of data, a window's update.
    etcd: {
      bytes: [
        Buffer.alloc(24, 'P'),
        http2(4, 12),
        http2(1, 30),
        http2(0, 7),
        http2(0, 0),
        http2(8, 4),
        http2(0, 1),
      ],
      requests: 2,
    },
  } as const;

  test.each(['zookeeper', 'redis', 'etcd'] as const)('%s, wherever its bytes are cut', (kind) => {
    const stream = Buffer.concat([...streams[kind].bytes]);
    for (let size = 1; size <= stream.length; size++) {
      const count = requestCounters[kind]();
      let total = 0;
      for (let at = 0; at < stream.length; at += size) total += count(stream.subarray(at, at + size));
      expect(total).toBe(streams[kind].requests);
    }
  });
});

describe('tables', () => {
  test('the overview has a dash for who was not there, the ratio with its spread, floor and aim', () => {
    const [head, , line] = ratesTable([{ scenario: solo, result: soloResult }]).split('\n');
    expect(head).toBe(
      "| cycles per second | Holdfast | Curator 5.4 | Holdfast is, of Curator's (spread) | floor | aim |",
    );
    expect(line).toBe('| solo: 1 task, 1 lock | 200 | 100 | **2.00×** (1.00 to 3.00) | 1.5× | 2× |');
  });

  test('each scenario says all that was measured, and why somebody is missing', () => {
    const lines = rateTable({ scenario: solo, result: soloResult }).split('\n');
    expect(lines[2]).toBe(
      '| Holdfast | 200 | **2.00×** (1.00 to 3.00) | 0.50 ms | 12.3 ms | 200 µs | 301 µs | 3.0 | 573 |',
    );
    expect(lines[3]).toBe('| Curator 5.4 | 100 |  | 0.50 ms | 12.3 ms | 200 µs | 301 µs | 3.0 | 573 |');
    expect(lines.at(-1)).toBe('Not here: kazoo 2.8, `etcd3` on etcd: is elsewhere.');
  });

  test('runs before this one are remembered by their ratios, the newest first', () => {
    expect(medianRatios(soloResult, 'curator')).toEqual({ holdfast: 2 });
    const second = { ...soloResult, quick: false, earlier: earlierRuns(soloResult, 'curator') };
    const third = { ...soloResult, earlier: earlierRuns(second, 'curator') };
    expect(third.earlier.map(({ quick }) => quick)).toEqual([false, true]);
    expect(rateTable({ scenario: solo, result: third })).toContain(
      'Runs before gave Holdfast 2.00×, 2.00× (quick) of Curator 5.4.',
    );
  });

  test('growth has a column for each number of waiters, and a dash where it was too many', () => {
    const lines = growthTable({ scenario: waiters, result: growthResult }).split('\n');
    expect(lines[0]).toContain('| 10 waiting | 5000 waiting |');
    expect(lines[2]).toBe(
      '| Holdfast | **2.00 ms**, 1.0 requests, 700 bytes | **4.00 ms**, 1.0 requests, 700 bytes |',
    );
    expect(lines[3]).toBe('| kazoo 2.8 | **8.00 ms**, 2.0 requests, 30 kB | – |');
  });

  test('what was not measured says so', () => {
    const { rates, distance, growth } = partsOf([{ scenario: solo, result: soloResult }]);
    expect(rates).toContain('Measured on 2 cores with Node 20.20.2, quick run, 2026-11-16.');
    expect([distance, growth]).toEqual(['Not measured yet.', 'Not measured yet.']);
  });

  test('a document without a place for a part is refused', () => {
    const file = 'a.md';
    const text = 'x\n<!-- generated: p -->\nold\n<!-- end: p -->\ny\n';
    expect(withGeneratedPart({ file, text }, 'p', 'new $1')).toBe(
      'x\n<!-- generated: p -->\n\nnew $1\n\n<!-- end: p -->\ny\n',
    );
    expect(() => withGeneratedPart({ file, text }, 'q', 'new')).toThrow('a.md has no place for q');
  });
});

describe('drawings', () => {
  const bars = (svg: string) =>
    [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));

  test('bars are as long as their values are large', () => {
    const svg = ratesChart([{ scenario: solo, result: soloResult }]);
    const [holdfast, curator] = bars(svg);
    expect(holdfast! / curator!).toBeCloseTo(2, 1);
    expect(svg).toContain('2.00×');
  });

  test('names are escaped, nothing is painted behind, and no bar is nothing', () => {
    const svg = barChart('a < b', [
      { title: '"&"', bars: [{ label: '<i>', value: 0, text: '0', colour: '#888888' }] },
    ]);
    expect(svg).toContain('a &lt; b');
    expect(svg).toContain('&quot;&amp;&quot;');
    expect(svg).not.toContain('<i>');
    expect(svg).not.toMatch(/fill="(#fff|#ffffff|white|#000|black)"/);
    expect(bars(svg)).toEqual([1]);
  });

  test('lines go up where the cost goes up, and stay inside', () => {
    const svg = growthChart({ scenario: waiters, result: growthResult });
    const [, line] = /<polyline [^>]*points="([^"]*)"/.exec(svg)!;
    const points = line!.split(' ').map((point) => point.split(',').map(Number) as [number, number]);
    expect(points[1]![0]).toBeGreaterThan(points[0]![0]);
    expect(points[1]![1]).toBeLessThan(points[0]![1]); // Down the page is more.
    const height = Number(/viewBox="0 0 \d+ ([\d.]+)"/.exec(svg)![1]);
    for (const [x, y] of points) {
      expect(x).toBeGreaterThan(0);
      expect(y).toBeGreaterThan(0);
      expect(y).toBeLessThan(height);
    }
  });

  test('of nothing there is still a drawing', () => {
    expect(lineChart('empty', 'x', [])).toContain('<title>empty</title>');
    expect(barChart('empty', [])).not.toContain('NaN');
  });
});
