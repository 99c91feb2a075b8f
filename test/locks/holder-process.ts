// Takes a lock and writes under it, again and again, without ever looking at its lease: what a program does that
// trusts its lock. `holder-process.ts <connect string>`; each write goes to whoever started it.
import { connect } from '../../src/holdfast.ts';

const SESSION_MS = 2_000;
const WRITE_EVERY_MS = 20;

const [, , servers] = process.argv as string[] as [string, string, string];
process.on('disconnect', () => process.exit()); // Whoever started it is gone.
const holdfast = await connect({ servers, sessionTimeoutMs: SESSION_MS });
const lease = await holdfast.mutex('account').acquire();
lease.signal.addEventListener('abort', () => process.send!({ kind: 'lost' }));
process.send!({ kind: 'held', token: String(lease.token) });
setInterval(() => process.send!({ kind: 'write', token: String(lease.token) }), WRITE_EVERY_MS);
