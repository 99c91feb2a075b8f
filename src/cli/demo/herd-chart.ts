import { fitted } from '../terminal/display-width.ts';
import type { Paint } from '../terminal/paint.ts';
import type { HerdCount } from './herd.ts';

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const NAMES = { simple: 'SimpleLock', mutex: 'Mutex' } as const;
const LABEL_COLUMNS = 'clients  SimpleLock  123456  '.length;
const BAR_COLUMNS = { min: 10, max: 60 };

/** Bars in one scale for both locks, so that the difference is what it looks like. */
export function herdLines(
  counts: readonly HerdCount[],
  { columns, paint }: { columns: number; paint: Paint },
): string[] {
  return [
    ...panelLines(
      'requests to the server until each client has held the lock once',
      'requests',
      counts,
      columns,
      paint,
    ),
    '',
    ...panelLines('events, each of which wakes a client', 'events', counts, columns, paint),
  ];
}

function panelLines(
  title: string,
  what: 'requests' | 'events',
  counts: readonly HerdCount[],
  columns: number,
  paint: Paint,
): string[] {
  const largest = Math.max(1, ...counts.flatMap(({ simple, mutex }) => [simple[what], mutex[what]]));
  const barColumns = Math.min(BAR_COLUMNS.max, Math.max(BAR_COLUMNS.min, columns - LABEL_COLUMNS - 1));
  const rows = counts.flatMap((count) =>
    (['simple', 'mutex'] as const).map((kind) => {
      const label = kind === 'simple' ? String(count.clients) : '';
      const value = count[kind][what];
      const bar = barText((value / largest) * barColumns);
      const tone = kind === 'simple' ? 'warning' : 'good';
      return `${fitted(label, 7, 'right')}  ${fitted(NAMES[kind], 10)}  ${fitted(String(value), 6, 'right')}  ${paint(tone, bar)}`;
    }),
  );
  return [paint('heading', title), `clients  lock         count`, ...rows];
}

/** To an eighth of a column; something for every number that is not 0. */
function barText(width: number): string {
  const eighths = Math.max(width > 0 ? 1 : 0, Math.round(width * 8));
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}
