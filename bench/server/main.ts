// `npm run bench:server`: the embedded server beside real ZooKeeper on the same machine, with the same client.
// `-- --quick` takes less than two minutes.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { measureThroughput } from './throughput.ts';

const resultsFolder = fileURLToPath(new URL('../results/', import.meta.url));

const report = await measureThroughput({ quick: process.argv.includes('--quick') });
console.log(report.join('\n'));
mkdirSync(resultsFolder, { recursive: true });
writeFileSync(`${resultsFolder}server.md`, `${report.join('\n')}\n`);
