import { expect, test } from 'vitest';
import { prometheusText } from './prometheus-text.ts';

test('each metric has its help, its type and its samples, with labels escaped', () => {
  const text = prometheusText([
    { name: 'znode_count', help: 'Nodes', type: 'gauge', samples: [{ value: 4 }] },
    {
      name: 'fsynctime',
      help: 'Milliseconds',
      type: 'summary',
      samples: [
        { suffix: '_count', value: 2 },
        { suffix: '_sum', value: 0.5 },
      ],
    },
    {
      name: 'dropped',
      help: 'By reason',
      type: 'counter',
      samples: [{ label: ['reason', 'a "b"\\\n'], value: 1 }],
    },
  ]);
  expect(text).toBe(
    [
      '# HELP znode_count Nodes',
      '# TYPE znode_count gauge',
      'znode_count 4',
      '# HELP fsynctime Milliseconds',
      '# TYPE fsynctime summary',
      'fsynctime_count 2',
      'fsynctime_sum 0.5',
      '# HELP dropped By reason',
      '# TYPE dropped counter',
      'dropped{reason="a \\"b\\"\\\\\\n"} 1',
      '',
    ].join('\n'),
  );
});
