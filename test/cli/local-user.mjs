// A program that uses the package, as built, with nothing configured. `hold <lock>` takes a lock, says so, and lets go
// when its standard input ends; `ensure <version>` makes sure of a local server as that version of the package would.
import { connect } from '../../dist/holdfast.js';
import { ensureLocalServer } from '../../dist/local/ensure-local-server.js';

const say = (value) => console.log(JSON.stringify(value));
const [, , verb, argument] = process.argv;
if (verb === 'ensure') {
  say(await ensureLocalServer({ version: argument }));
} else {
  const holdfast = await connect();
  const lease = await holdfast.mutex(argument).acquire();
  say({ token: String(lease.token), session: String(holdfast.zk.session.id) });
  holdfast.zk.on('connected', () => say({ connected: String(holdfast.zk.session.id) }));
  for await (const _chunk of process.stdin);
  say({ held: lease.remainingMs() > 0 && !lease.signal.aborted });
  await holdfast.close();
}
