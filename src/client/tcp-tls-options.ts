import { type ConnectionOptions, createSecureContext, type SecureContextOptions } from 'node:tls';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';

/** Certificates and keys, as `node:tls` takes them. The server is verified unless that is turned off by name. */
export type TlsOptions = Pick<
  ConnectionOptions,
  | 'ca'
  | 'cert'
  | 'key'
  | 'passphrase'
  | 'pfx'
  | 'servername'
  | 'minVersion'
  | 'maxVersion'
  | 'ciphers'
  | 'checkServerIdentity'
  | 'rejectUnauthorized'
>;

const names: OptionNames<TlsOptions> = {
  ca: true,
  cert: true,
  key: true,
  passphrase: true,
  pfx: true,
  servername: true,
  minVersion: true,
  maxVersion: true,
  ciphers: true,
  checkServerIdentity: true,
  rejectUnauthorized: true,
};

/** What every connection of a client needs, read once: nothing of it can fail later. */
export type TlsSettings = Pick<
  ConnectionOptions,
  'secureContext' | 'servername' | 'checkServerIdentity' | 'rejectUnauthorized'
>;

/** @throws TypeError naming the option that is wrong, and why. */
export function readTlsOptions(options: TlsOptions): TlsSettings {
  checkOptionNames('tls', options, names);
  // To `node:tls`, an option that is undefined is not always one that is left out.
  const given: TlsOptions = Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined && value !== null),
  );
  const { servername, checkServerIdentity, rejectUnauthorized, ...credentials } = given;
  const { ca, cert, key, passphrase, pfx, minVersion, maxVersion, ciphers } = credentials;
  checkType('servername', servername, 'string');
  checkType('rejectUnauthorized', rejectUnauthorized, 'boolean');
  checkType('checkServerIdentity', checkServerIdentity, 'function');
  if ((cert === undefined) !== (key === undefined)) {
    throw new TypeError(
      `tls: ${cert === undefined ? 'key without cert' : 'cert without key'}; both are needed`,
    );
  }
  const secret = passphrase === undefined ? {} : { passphrase };
  if (ca !== undefined) checkAuthorities(ca);
  if (cert !== undefined) contextOf('tls.cert: certificates in PEM are needed, not a path', { cert });
  if (key !== undefined)
    contextOf('tls.key: a private key in PEM is needed, and its passphrase', { key, ...secret });
  if (pfx !== undefined) contextOf('tls.pfx: PKCS#12 is needed, and its passphrase', { pfx, ...secret });
  contextOf('tls.minVersion, tls.maxVersion', {
    ...(minVersion && { minVersion }),
    ...(maxVersion && { maxVersion }),
  });
  if (ciphers !== undefined) contextOf('tls.ciphers', { ciphers });
  return {
    secureContext: contextOf('tls: these do not go together', credentials),
    ...(servername !== undefined && { servername }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
    ...(checkServerIdentity && { checkServerIdentity: guarded(checkServerIdentity) }),
  };
}

function checkType(name: string, value: unknown, type: 'string' | 'boolean' | 'function'): void {
  if (value === undefined || typeof value === type) return;
  throw new TypeError(`tls.${name}: ${typeof value} given; a ${type} is needed`);
}

/** Text without a certificate would pass for an empty list of authorities, which verifies nobody. */
function checkAuthorities(ca: NonNullable<TlsOptions['ca']>): void {
  const all = Array.isArray(ca) ? ca : [ca];
  if (all.length === 0)
    throw new TypeError('tls.ca: an empty list given; leave it out for those of the system');
  for (const each of all) contextOf('tls.ca: certificates in PEM are needed, not a path', { cert: each });
}

function contextOf(what: string, options: SecureContextOptions) {
  try {
    return createSecureContext(options);
  } catch (error) {
    throw new TypeError(`${what}: ${(error as Error).message}`, { cause: error });
  }
}

/** It is called where what it throws would end the process; here that refuses the server. */
function guarded(
  check: NonNullable<TlsOptions['checkServerIdentity']>,
): NonNullable<TlsOptions['checkServerIdentity']> {
  return (host, certificate) => {
    try {
      return check(host, certificate);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  };
}
