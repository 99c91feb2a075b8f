import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const VALID_DAYS = 2;
const LOOPBACK_NAMES = 'IP:127.0.0.1,DNS:localhost';

/** A private key (PKCS#8) and its certificate, as PEM files. */
export interface KeyPair {
  readonly keyFile: string;
  readonly certFile: string;
}

interface Authority extends KeyPair {
  readonly name: string;
}

interface Certificate {
  readonly name: string;
  /** In OpenSSL's form, the widest part first: `/O=Holdfast/CN=client`. */
  readonly subject: string;
  readonly names?: string;
  readonly validDays?: number;
}

/** Throw-away certificates, good and bad; disposing removes their folder. */
export interface Certificates extends AsyncDisposable {
  readonly folder: string;
  readonly caFile: string;
  /** For 127.0.0.1 and localhost. */
  readonly server: KeyPair;
  /** Its subject is `CN=client,O=Holdfast`. */
  readonly client: KeyPair;
  /** One part, whose text is the whole subject of `client`: a common name with commas in it. */
  readonly forgedClient: KeyPair;
  /** As `server`, but no longer valid. */
  readonly expiredServer: KeyPair;
  /** As `server`, but for a host of another name. */
  readonly wrongHostServer: KeyPair;
  /** As `server`, but signed by itself. */
  readonly selfSignedServer: KeyPair;
  /** An authority that `caFile` knows nothing of. */
  readonly otherCaFile: string;
  readonly otherCaServer: KeyPair;
  readonly otherCaClient: KeyPair;
}

/** Makes the certificates anew with the `openssl` command. */
export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-certificates-'));
  const dispose = () => rm(folder, { recursive: true, force: true });
  try {
    return { ...(await makeAll(folder)), folder, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function makeAll(folder: string) {
  const [ca, otherCa, selfSignedServer] = await Promise.all([
    selfSign(folder, { name: 'ca', subject: '/O=Holdfast/CN=Holdfast test authority' }),
    selfSign(folder, { name: 'other-ca', subject: '/O=Holdfast/CN=another authority' }),
    selfSign(folder, { name: 'self-signed-server', subject: '/CN=localhost', names: LOOPBACK_NAMES }),
  ]);
  const server = { subject: '/O=Holdfast/CN=localhost', names: LOOPBACK_NAMES };
  const client = { subject: '/O=Holdfast/CN=client' };
  const [good, expired, wrongHost, otherServer, goodClient, forgedClient, otherClient] = await Promise.all([
    sign(folder, ca, { ...server, name: 'server' }),
    sign(folder, ca, { ...server, name: 'expired-server', validDays: -1 }),
    sign(folder, ca, { ...server, name: 'wrong-host-server', names: 'DNS:elsewhere.invalid' }),
    sign(folder, otherCa, { ...server, name: 'other-ca-server' }),
    sign(folder, ca, { ...client, name: 'client' }),
    sign(folder, ca, { subject: '/CN=client,O=Holdfast', name: 'forged-client' }),
    sign(folder, otherCa, { ...client, name: 'other-ca-client' }),
  ]);
  return {
    caFile: ca.certFile,
    server: good,
    client: goodClient,
    forgedClient,
    expiredServer: expired,
    wrongHostServer: wrongHost,
    selfSignedServer,
    otherCaFile: otherCa.certFile,
    otherCaServer: otherServer,
    otherCaClient: otherClient,
  };
}

const pairOf = (folder: string, name: string): KeyPair => ({
  keyFile: join(folder, `${name}.key.pem`),
  certFile: join(folder, `${name}.cert.pem`),
});

/** Elliptic curve keys are made in milliseconds; RSA ones would take most of a test's time. */
const newKey = (keyFile: string) =>
  ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile] as const;

async function selfSign(folder: string, certificate: Certificate): Promise<Authority> {
  const { name, subject, names } = certificate;
  const pair = pairOf(folder, name);
  const request = ['req', '-x509', ...newKey(pair.keyFile), '-out', pair.certFile, '-subj', subject];
  if (names !== undefined) request.push('-addext', `subjectAltName=${names}`);
  await run('openssl', [...request, '-days', String(VALID_DAYS)]);
  return { ...pair, name };
}

async function sign(folder: string, authority: Authority, certificate: Certificate): Promise<KeyPair> {
  const { name, subject, names, validDays = VALID_DAYS } = certificate;
  const pair = pairOf(folder, name);
  const requestFile = join(folder, `${name}.request.pem`);
  const request = ['req', ...newKey(pair.keyFile), '-out', requestFile, '-subj', subject];
  if (names !== undefined) request.push('-addext', `subjectAltName=${names}`);
  await run('openssl', request);
  const issue = ['x509', '-req', '-in', requestFile, '-out', pair.certFile, '-copy_extensions', 'copy'];
  const issuer = ['-CA', authority.certFile, '-CAkey', authority.keyFile];
  await run('openssl', [...issue, ...issuer, '-days', String(validDays)]);
  return pair;
}
