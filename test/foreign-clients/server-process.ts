// Runs our server as a process of its own, told what to do as ZooKeeper's JVM is: system properties, then the main
// class, then a zoo.cfg. The script java-shim/java makes foreign test suites start this instead of ZooKeeper.
import { readFileSync } from 'node:fs';
import { startServer } from '../../src/server/start-server.ts';

const SUPER_DIGEST_PROPERTY = 'zookeeper.DigestAuthenticationProvider.superDigest';
const TICK_MS_DEFAULT = 3_000;

const jvmArguments = process.argv.slice(2);
const properties = pairs(jvmArguments.filter((each) => each.startsWith('-D')).map((each) => each.slice(2)));
const settings = pairs(readFileSync(jvmArguments.at(-1)!, 'utf8').split('\n'));

const tickMs = Number(settings.get('tickTime') ?? TICK_MS_DEFAULT);
const dataFolder = settings.get('dataDir');
const superDigest = properties.get(SUPER_DIGEST_PROPERTY);
const whitelist = settings.get('4lw.commands.whitelist');
const server = await startServer({
  host: settings.get('clientPortAddress') ?? '127.0.0.1',
  port: Number(settings.get('clientPort')),
  ...(dataFolder !== undefined && { folder: dataFolder }),
  limits: {
    tickMs,
    sessionTimeoutMsMin: Number(settings.get('minSessionTimeout') ?? 2 * tickMs),
    sessionTimeoutMsMax: Number(settings.get('maxSessionTimeout') ?? 20 * tickMs),
  },
  ...(superDigest !== undefined && { superDigest }),
  ...(whitelist !== undefined && { fourLetterWords: whitelist === '*' ? '*' : whitelist.split(/[\s,]+/) }),
});
process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));

/** `name=value` of each line that has it; a comment or an empty line does not. */
function pairs(lines: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const [, name, value] = /^([^#=]+)=(.*)$/.exec(line.trim()) ?? [];
      return name === undefined || value === undefined ? [] : [[name.trim(), value.trim()]];
    }),
  );
}
