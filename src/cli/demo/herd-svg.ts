import type { HerdCount } from './herd.ts';

const PANEL = { width: 420, height: 300, left: 70, right: 20, top: 50, bottom: 50 };
const COLOURS = { simple: '#c2410c', mutex: '#15803d' } as const;
const NAMES = { simple: 'SimpleLock', mutex: 'Mutex' } as const;
const TICKS = 4;

/** The counts as a drawing: requests on the left, events on the right, both in plain numbers. */
export function herdSvg(counts: readonly HerdCount[], where: string): string {
  const width = PANEL.width * 2;
  const height = PANEL.height + 60;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>Requests and events of SimpleLock and Mutex</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="${width / 2}" y="24" text-anchor="middle" font-size="16" font-weight="600">The herd: n clients, one lock, each holds it once</text>`,
    panel('requests to the server', 'requests', counts, 0),
    panel('events that wake a client', 'events', counts, PANEL.width),
    ...(['simple', 'mutex'] as const).map((kind, index) => {
      const x = width / 2 - 100 + index * 120;
      return `<g><rect x="${x}" y="${height - 30}" width="12" height="12" fill="${COLOURS[kind]}"/><text x="${x + 18}" y="${height - 20}">${NAMES[kind]}</text></g>`;
    }),
    `<text x="${width - 10}" y="${height - 8}" text-anchor="end" font-size="10" fill="#64748b">counted on the socket, ${escaped(where)}</text>`,
    '</svg>',
    '',
  ].join('\n');
}

function panel(title: string, what: 'requests' | 'events', counts: readonly HerdCount[], at: number): string {
  const clientsMax = Math.max(1, ...counts.map(({ clients }) => clients));
  const top = roundedUp(Math.max(1, ...counts.flatMap(({ simple, mutex }) => [simple[what], mutex[what]])));
  const x = (clients: number) =>
    round(at + PANEL.left + (clients / clientsMax) * (PANEL.width - PANEL.left - PANEL.right));
  const y = (value: number) =>
    round(PANEL.height - PANEL.bottom - (value / top) * (PANEL.height - PANEL.top - PANEL.bottom) + 20);
  const grid = Array.from({ length: TICKS + 1 }, (_, tick) => {
    const value = (top / TICKS) * tick;
    return `<line x1="${x(0)}" x2="${x(clientsMax)}" y1="${y(value)}" y2="${y(value)}" stroke="#e2e8f0"/><text x="${x(0) - 8}" y="${y(value) + 4}" text-anchor="end" fill="#475569">${value}</text>`;
  });
  const axis = counts.map(
    ({ clients }) =>
      `<text x="${x(clients)}" y="${y(0) + 18}" text-anchor="middle" fill="#475569">${clients}</text>`,
  );
  const lines = (['simple', 'mutex'] as const).map((kind) => {
    const points = counts.map((count) => [x(count.clients), y(count[kind][what])] as const);
    const dots = points.map(([cx, cy], index) => {
      const value = counts[index]![kind][what];
      return `<circle cx="${cx}" cy="${cy}" r="3.5" fill="${COLOURS[kind]}"><title>${NAMES[kind]}, ${counts[index]!.clients} clients: ${value}</title></circle>`;
    });
    const last = points.at(-1);
    const label = last
      ? `<text x="${last[0] - 8}" y="${last[1] - 8}" text-anchor="end" font-weight="600" fill="${COLOURS[kind]}">${counts.at(-1)![kind][what]}</text>`
      : '';
    return `<polyline fill="none" stroke="${COLOURS[kind]}" stroke-width="2" points="${points.map((point) => point.join(',')).join(' ')}"/>${dots.join('')}${label}`;
  });
  const middle = at + (PANEL.left + PANEL.width - PANEL.right) / 2;
  return `<g><text x="${middle}" y="${PANEL.top}" text-anchor="middle" font-weight="600">${title}</text>${grid.join('')}${axis.join('')}<text x="${middle}" y="${y(0) + 36}" text-anchor="middle" fill="#475569">clients</text>${lines.join('')}</g>`;
}

/** The next of 1, 2, 4, 5, 10 times a power of ten: its quarters are round as well, or nearly. */
function roundedUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 6, 8, 10].find((factor) => factor * power >= value) ?? 10) * power;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** For text and for values of attributes. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
