// `npm run bench:server`: the embedded server beside real ZooKeeper on the same machine, with the same client.
// `-- --quick` takes less than two minutes; `-- --scale` is about many sessions, watches and nodes instead.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { measureScale } from './scale.ts';
import { measureThroughput } from './throughput.ts';

const quick = process.argv.includes('--quick');
const scale = process.argv.includes('--scale');
const resultsFolder = fileURLToPath(new URL('../results/', import.meta.url));

const report = scale ? await measureScale({ quick }) : await measureThroughput({ quick });
console.log(report.join('\n'));
mkdirSync(resultsFolder, { recursive: true });
writeFileSync(`${resultsFolder}${scale ? 'server-scale' : 'server'}.md`, `${report.join('\n')}\n`);
