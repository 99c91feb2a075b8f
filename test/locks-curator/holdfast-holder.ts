// Takes a mutex and waits for another, in a process of its own, to be killed: `holdfast-holder.ts <servers> <name>`.
import { connect } from '../../src/holdfast.ts';

const [, , servers, name] = process.argv as string[] as [string, string, string, string];
const holdfast = await connect({ servers, sessionTimeoutMs: 2_000 });
const mutex = holdfast.mutex(name);
const lease = await mutex.acquire();
mutex.on('waiting', () => process.stdout.write(`holds ${lease.token}, and waits\n`));
await mutex.acquire();
