import { expect, test } from 'vitest';
import { childEnvironment } from './child-environment.ts';

const FACTS = { lockText: 'a', token: '7', session: '0x1', acquiredAt: 'now', held: '[]' };
const ENV = { PATH: '/bin', HOLDFAST_AUTH: 'digest:anna:secret', HOLDFAST_SERVERS: 'zk:2181' };

test('the credentials are kept from the command of a run', () => {
  const env = childEnvironment(ENV, FACTS, undefined);
  expect(JSON.stringify(env)).not.toContain('secret');
  expect(Object.keys(env)).not.toContain('HOLDFAST_AUTH');
  expect(env).toMatchObject({
    PATH: '/bin',
    HOLDFAST_SERVERS: 'zk:2181',
    HOLDFAST_LOCK: 'a',
    HOLDFAST_TOKEN: '7',
  });
});

test('the command has those that are passed on purpose', () => {
  expect(childEnvironment(ENV, FACTS, 'digest:anna:secret')).toMatchObject({
    HOLDFAST_AUTH: 'digest:anna:secret',
  });
});
