// Many sessions in a process of their own: `sessions-process.ts <connect string> <how many>`. Holds them until told.
import { connect } from 'holdfast/zookeeper';

const SESSION_TIMEOUT_MS = 30_000;
const DIALS_AT_ONCE = 50;
const CONNECT_TIMEOUT_MS = 120_000;

const [, , connectString, countText] = process.argv as string[] as [string, string, string, string];
let left = Number(countText);
let lostCount = 0;
await Promise.all(
  Array.from({ length: DIALS_AT_ONCE }, async () => {
    while (left-- > 0) {
      const zk = await connect(connectString, {
        sessionTimeoutMs: SESSION_TIMEOUT_MS,
        timeoutMs: CONNECT_TIMEOUT_MS,
      });
      zk.on('lost', () => lostCount++);
    }
  }),
);
process.on('message', () => process.send!(lostCount)); // Whatever is asked, it is this.
process.on('disconnect', () => process.exit()); // The bench is gone: so are we.
process.send!('open');
