// Waiting for what no event announces to a client. Tests state no time limits of
// their own (docs/testing.md): this is the one limit, and only a hang reaches it.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

export const limit = 300_000; // ms

// until polls f until its answer is truthy, and returns that answer. Its failure
// says what was awaited: a text, or a function that makes one then.
export async function until(what, f) {
  for (const deadline = Date.now() + limit; ; await pause(50)) {
    const answer = await f();
    if (answer) return answer;
    assert.ok(Date.now() < deadline, typeof what === 'function' ? what() : what);
  }
}
