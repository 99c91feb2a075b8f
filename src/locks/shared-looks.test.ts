import { describe, expect, test } from 'vitest';
import { deferred } from '../base/deferred.ts';
import { SharedLooks } from './shared-looks.ts';

function scene() {
  const looks = new SharedLooks<string>();
  const asked: { readonly signal: AbortSignal; readonly answer: ReturnType<typeof deferred<string>> }[] = [];
  const look = (signal: AbortSignal = new AbortController().signal) =>
    looks.of('m', signal, (shared) => {
      const answer = deferred<string>();
      asked.push({ signal: shared, answer });
      return answer.promise;
    });
  return { asked, look };
}

describe('looks at one name', () => {
  test('are one look for all who ask before it is answered, and another after that', async () => {
    const { asked, look } = scene();
    const looks = [look(), look(), look()];
    expect(asked).toHaveLength(1);
    asked[0]!.answer.resolve('held');
    expect(await Promise.all(looks)).toEqual(['held', 'held', 'held']);
    void look();
    expect(asked).toHaveLength(2);
  });

  test('are given up with the last who asked, and not before', async () => {
    const { asked, look } = scene();
    const controllers = [new AbortController(), new AbortController()];
    const looks = controllers.map(({ signal }) => look(signal));
    controllers[0]!.abort(new Error('first'));
    await expect(looks[0]).rejects.toThrow('first');
    expect(asked[0]!.signal.aborted).toBe(false);
    controllers[1]!.abort(new Error('last'));
    await expect(looks[1]).rejects.toThrow('last');
    expect(asked[0]!.signal.aborted).toBe(true);
  });
});
