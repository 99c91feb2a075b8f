import { describe, expect, test } from 'vitest';
import { startServer } from './start-server.ts';

describe('startServer', () => {
  test.each([
    [{ folders: '/nowhere' }, 'startServer: there is no option "folders", did you mean folder?'],
    ['127.0.0.1:2181', 'startServer: the string "127.0.0.1:2181" given; an object of options is needed'],
    [{ admin: { ports: 1 } }, 'admin: there is no option "ports", did you mean port?'],
    [{ admin: 8080 }, 'admin: a number given; an object of options is needed'],
    [{ limits: { connections: 1 } }, 'there is no limit connections'],
  ])('refuses %j before it listens', async (options, message) => {
    await expect(startServer(options as never)).rejects.toThrow(message);
    await expect(startServer(options as never)).rejects.toBeInstanceOf(TypeError);
  });
});
