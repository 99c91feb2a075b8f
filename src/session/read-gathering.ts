import { errorCodes } from '../protocol/error-codes.ts';
import { GatheredReads } from './gathered-reads.ts';
import type { ReadRun } from './read-run.ts';
import type { SessionRequest } from './session-request.ts';

/**
 * Whether the reads of a session may be gathered: only where the server is known to understand `multiRead`, since one
 * that does not ends the connection over it.
 */
export class ReadGathering {
  readonly #wanted: boolean | undefined;
  readonly #run: Pick<ReadRun, 'gathering' | 'sawCrowd' | 'refused'>;
  /** Counts connections, so that what is learnt of the server of one is not believed of another's. */
  #connection = 0;
  #mayAsk = false;
  /** It has cost a connection, or a server knows nothing of it: no more of it in this session. */
  #failed = false;

  /** `wanted`: always, never, or (undefined) where the server says so. */
  constructor(wanted: boolean | undefined, run: Pick<ReadRun, 'gathering' | 'sawCrowd' | 'refused'>) {
    this.#wanted = wanted;
    this.#run = run;
  }

  connectionOpened(): void {
    this.#connection++;
    this.#run.sawCrowd = false;
    this.#run.gathering = this.#wanted === true && !this.#failed;
    this.#mayAsk = this.#wanted === undefined && !this.#failed;
  }

  /** The connection whose server should be asked now: at most once each, and not before it would be of use. */
  connectionToAsk(): number | undefined {
    if (!this.#mayAsk || !this.#run.sawCrowd) return undefined;
    this.#mayAsk = false;
    return this.#connection;
  }

  understood(connection: number): void {
    if (connection === this.#connection) this.#run.gathering = !this.#failed;
  }

  /** The answer to this request could not be read, and has cost the connection. */
  culpritFound(request: SessionRequest | undefined): void {
    if (request instanceof GatheredReads) this.#failed = true;
  }

  /** True if a refusal is of the gathered request as such and not of its reads, which alone may fare better. */
  isRefusedBy(err: number): boolean {
    const { unimplemented, 'marshalling-error': marshalling, 'bad-arguments': badArguments } = errorCodes;
    if (err !== unimplemented && err !== marshalling && err !== badArguments) return false;
    if (err === unimplemented) {
      this.#failed = true;
      this.#run.gathering = false;
    }
    this.#run.refused();
    return true;
  }
}
