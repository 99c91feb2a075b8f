import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as tls from 'node:tls';
import { promisify } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { type Certificates, type KeyPair, makeCertificates } from './certificates.ts';
import { freePorts } from './free-port.ts';
import { sharedStandalone } from './shared-servers.ts';
import { fourLetterWord, startZooKeeper, type ZooKeeperProcess } from './zookeeper-process.ts';

/** What a client sends first: no last zxid, 4 s of timeout, no session yet, an empty password, not read-only. */
const CONNECT_REQUEST = Buffer.from(
  `0000002d${'00'.repeat(14)}0fa0${'00'.repeat(8)}00000010${'00'.repeat(17)}`,
  'hex',
);

/** A session is a transaction too: the cheapest write there is. */
async function openSession(server: ZooKeeperProcess): Promise<void> {
  const socket = connect({ host: server.host, port: server.port });
  socket.write(CONNECT_REQUEST);
  await once(socket, 'data');
  socket.destroy();
}

async function zxid(server: ZooKeeperProcess): Promise<number> {
  return Number(/^Zxid: (\w+)$/m.exec(await server.fourLetterWord('srvr'))?.[1]);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A server whose starter is not this process, but one that exits when it is written to. */
async function startInAnotherProcess() {
  const script = `
    const { startZooKeeper } = await import('./test/support/zookeeper-process.ts');
    const { pid, dataFolder } = await startZooKeeper();
    process.stdin.once('data', () => process.exit(0));
    console.log(JSON.stringify({ pid, dataFolder }));
  `;
  const starter = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script]);
  const complaints = text(starter.stderr);
  const died = once(starter, 'exit').then(async () => {
    throw new Error(`the starter exited: ${await complaints}`);
  });
  const [line] = await Promise.race([once(starter.stdout, 'data'), died]);
  died.catch(() => {}); // From now on it is meant to.
  return { starter, ...(JSON.parse(String(line)) as { pid: number; dataFolder: string }) };
}

/** Runs one command of ZooKeeper's own command line client. */
async function zkCli(connectString: string, command: string[], properties: Record<string, string> = {}) {
  const jars = [
    'zookeeper',
    'slf4j-nop',
    'netty-codec',
    'netty-resolver',
    'netty-transport-native-unix-common',
  ];
  const { stdout, stderr } = await promisify(execFile)('java', [
    ...Object.entries(properties).map(([name, value]) => `-D${name}=${value}`),
    '-XX:TieredStopAtLevel=1',
    '-cp',
    jars.map((jar) => `/usr/share/java/${jar}.jar`).join(':'),
    'org.apache.zookeeper.ZooKeeperMain',
    '-server',
    connectString,
    ...command,
  ]);
  return stdout + stderr;
}

describe('free ports', () => {
  test('are distinct, within one call and over several', async () => {
    const ports = (await Promise.all([freePorts(20), freePorts(20)])).flat();
    expect(new Set(ports).size).toBe(40);
  });
});

describe('a zookeeper process', () => {
  test('serves on its port and keeps everything in its folder, the log included', async () => {
    await using server = await startZooKeeper({ tickTimeMs: 300, maxSessionTimeoutMs: 9_000 });
    expect(await server.mode()).toBe('standalone');
    expect(server.connectString).toBe(`127.0.0.1:${server.port}`);
    expect(isAlive(server.pid!)).toBe(true);
    expect(await server.fourLetterWord('ruok')).toBe('imok');
    const configuration = await server.fourLetterWord('conf');
    expect(configuration).toContain(`dataDir=${server.dataFolder}/`);
    expect(configuration).toMatch(/^tickTime=300\n(.*\n)*minSessionTimeout=600\nmaxSessionTimeout=9000$/m);
    expect(await readFile(server.logFile, 'utf8')).toContain('QuorumPeerConfig - Reading configuration');
  });

  test('comes back with its port and its data after kill -9', async () => {
    await using server = await startZooKeeper();
    const before = { pid: server.pid!, port: server.port };
    for (let session = 0; session < 5; session++) await openSession(server);
    const written = await zxid(server);
    expect(written).toBeGreaterThanOrEqual(5);
    await server.kill();
    expect(isAlive(before.pid)).toBe(false);
    expect(server.running).toBe(false);
    expect(await server.mode()).toBeUndefined();
    await server.restart();
    expect(server.port).toBe(before.port);
    expect(server.pid).not.toBe(before.pid);
    expect(await zxid(server)).toBeGreaterThanOrEqual(written);
  });

  test('stops in order, even while paused, and starts again', async () => {
    await using server = await startZooKeeper();
    const pid = server.pid!;
    await server.pause();
    const stoppedAtMs = performance.now();
    await server.stop();
    expect(performance.now() - stoppedAtMs).toBeLessThan(5_000); // Later it would have been a SIGKILL.
    expect(isAlive(pid)).toBe(false);
    await server.start();
    await server.waitUntilServing();
    await expect(server.start()).rejects.toThrow('is running already');
  });

  test('answers nothing while paused and goes on when resumed', async () => {
    await using server = await startZooKeeper();
    await server.pause();
    await expect(fourLetterWord(server, 'ruok', 200)).rejects.toThrow('does not answer ruok within 200 ms');
    server.resume();
    expect(await server.fourLetterWord('ruok')).toBe('imok');
  });

  test('says why, in the words of its log, when it dies at the start', async () => {
    const failing = startZooKeeper({
      systemProperties: { 'zookeeper.serverCnxnFactory': 'no.such.Factory' },
    });
    await expect(failing).rejects.toThrow(/exited \(code 1\).*Couldn't instantiate no\.such\.Factory/s);
  });

  test('leaves neither process nor folder behind', async () => {
    const server = await startZooKeeper();
    const pid = server.pid!;
    await server[Symbol.asyncDispose]();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(server.dataFolder)).toBe(false);
  });

  test.each(['exit', 'SIGKILL'] as const)('does not outlive its starter, ended by %s', async (ending) => {
    const { starter, pid, dataFolder } = await startInAnotherProcess();
    try {
      expect(isAlive(pid)).toBe(true);
      if (ending === 'exit') starter.stdin.write('exit');
      else starter.kill('SIGKILL');
      await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { interval: 20, timeout: 5_000 });
      // Killed, the starter cannot clean up; the folder is the price.
      if (ending === 'exit') await vi.waitFor(() => expect(existsSync(dataFolder)).toBe(false));
    } finally {
      if (isAlive(pid)) process.kill(pid, 'SIGKILL');
      await rm(dataFolder, { recursive: true, force: true });
    }
  });

  test('lets its users log in by SASL, and nobody else', async () => {
    await using server = await startZooKeeper({ saslUsers: { bob: 'a "quoted" \\ password', alice: 'x' } });
    const whoAmI = async (user: string, password: string) => {
      const file = join(server.dataFolder, 'client-jaas.conf');
      const quoted = `"${password.replaceAll(/["\\]/g, '\\$&')}"`;
      const module = 'org.apache.zookeeper.server.auth.DigestLoginModule';
      await writeFile(file, `Client { ${module} required username="${user}" password=${quoted}; };`);
      return zkCli(server.connectString, ['whoami'], { 'java.security.auth.login.config': file });
    };
    expect(await whoAmI('bob', 'a "quoted" \\ password')).toMatch(/^sasl: bob$/m);
    const refused = await whoAmI('alice', 'not x');
    expect(refused).toContain('AuthFailed');
    expect(refused).not.toContain('sasl:');
  });

  test('is shared by all tests, with TTL nodes enabled', async () => {
    const server = sharedStandalone();
    expect(await fourLetterWord(server, 'conf')).toMatch(
      /^minSessionTimeout=1000\nmaxSessionTimeout=60000$/m,
    );
    const path = `/zookeeper-process-test-${process.pid}`;
    expect(await zkCli(server.connectString, ['create', '-t', '60000', path])).toContain(`Created ${path}`);
    await zkCli(server.connectString, ['delete', path]);
  });
});

describe('tls', () => {
  /** What the server says to a four-letter word over TLS, or the code of the error. */
  const askOverTls = async (port: number, certificates: Certificates, client?: KeyPair) => {
    const identity = client && { key: await readFile(client.keyFile), cert: await readFile(client.certFile) };
    const ca = await readFile(certificates.caFile);
    return new Promise<string>((resolve) => {
      const socket = tls.connect({ host: '127.0.0.1', port, ca, ...identity }, () => socket.write('ruok'));
      let answer = '';
      let complaint = '';
      socket.on('data', (chunk) => {
        answer += chunk.toString();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => {
        complaint = error.code ?? error.message;
      });
      // The server hangs up at once, and our own goodbye may then be answered with a reset.
      socket.on('close', () => resolve(answer === '' ? complaint : answer));
    });
  };

  test.each([
    { clientAuth: 'none', withoutCertificate: 'imok', withAnother: 'imok' },
    { clientAuth: 'want', withoutCertificate: 'imok', withAnother: /ALERT_CERTIFICATE_UNKNOWN/ },
    {
      clientAuth: 'need',
      withoutCertificate: /ALERT_BAD_CERTIFICATE/,
      withAnother: /ALERT_CERTIFICATE_UNKNOWN/,
    },
  ] as const)('serves both ports with client certificates: $clientAuth', async (policy) => {
    await using certificates = await makeCertificates();
    const { clientAuth } = policy;
    const { caFile, client, otherCaClient } = certificates;
    await using server = await startZooKeeper({ tls: { ...certificates.server, caFile, clientAuth } });
    expect(await askOverTls(server.securePort!, certificates, client)).toBe('imok');
    expect(await askOverTls(server.securePort!, certificates)).toMatch(policy.withoutCertificate);
    expect(await askOverTls(server.securePort!, certificates, otherCaClient)).toMatch(policy.withAnother);
    expect(await server.fourLetterWord('ruok')).toBe('imok');
  });

  test('knows a client by the subject of its certificate', async () => {
    await using certificates = await makeCertificates();
    const { caFile, client } = certificates;
    await using server = await startZooKeeper({
      tls: { ...certificates.server, caFile, clientAuth: 'need' },
    });
    const keyStore = join(certificates.folder, 'client-key-store.pem');
    await writeFile(
      keyStore,
      (await readFile(client.keyFile, 'utf8')) + (await readFile(client.certFile, 'utf8')),
    );
    const answer = await zkCli(`127.0.0.1:${server.securePort}`, ['whoami'], {
      'zookeeper.client.secure': 'true',
      'zookeeper.clientCnxnSocket': 'org.apache.zookeeper.ClientCnxnSocketNetty',
      'zookeeper.ssl.keyStore.location': keyStore,
      'zookeeper.ssl.keyStore.type': 'PEM',
      'zookeeper.ssl.trustStore.location': caFile,
      'zookeeper.ssl.trustStore.type': 'PEM',
    });
    expect(answer).toMatch(/^x509: CN=client,O=Holdfast$/m);
  });

  test('has certificates that are bad in the way their name says', async () => {
    await using certificates = await makeCertificates();
    const verdictOn = async (pair: KeyPair) => {
      const server = tls.createServer({
        key: await readFile(pair.keyFile),
        cert: await readFile(pair.certFile),
      });
      server.on('secureConnection', (socket) => socket.on('error', () => {}).end('imok'));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      try {
        return await askOverTls((server.address() as AddressInfo).port, certificates);
      } finally {
        server.close();
      }
    };
    expect(await verdictOn(certificates.server)).toBe('imok');
    expect(await verdictOn(certificates.expiredServer)).toBe('CERT_HAS_EXPIRED');
    expect(await verdictOn(certificates.wrongHostServer)).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(await verdictOn(certificates.selfSignedServer)).toBe('DEPTH_ZERO_SELF_SIGNED_CERT');
    expect(await verdictOn(certificates.otherCaServer)).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  });

  test('leaves no certificate behind', async () => {
    const certificates = await makeCertificates();
    await certificates[Symbol.asyncDispose]();
    expect(existsSync(certificates.folder)).toBe(false);
  });
});
