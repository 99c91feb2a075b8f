import { Neighbours } from '../../src/queue/neighbours.ts';

/** Nobody knows of anybody else of its process: every place is as those of other processes are. */
export class Strangers extends Neighbours {
  override follow(): undefined {
    return undefined;
  }
}
