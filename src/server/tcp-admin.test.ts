import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { startServer } from './start-server.ts';

test('health is answered while as many connections as there may be ask nothing', async () => {
  await using server = await startServer({ admin: {} });
  const { hostname: host, port } = new URL(server.adminUrl!);
  const idle = Array.from({ length: 100 }, () => connect({ host, port: Number(port) }));
  try {
    await Promise.all(idle.map((socket) => once(socket, 'connect')));
    const response = await fetch(`${server.adminUrl}/healthz`);
    expect(response.status).toBe(200);
    // Whoever came first has made room, and the others are served.
    await Promise.all(idle.slice(0, 36).map((socket) => socket.closed || once(socket, 'close')));
    expect(idle.slice(40).map(({ closed }) => closed)).not.toContain(true);
  } finally {
    for (const socket of idle) socket.destroy();
  }
});
