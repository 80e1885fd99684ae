// Waiting for a condition, with an end.
import assert from "node:assert/strict";

const PATIENCE_MS = 15_000;

/** Asks until the answer is right; says the last one when it never was. */
export async function eventually(ask, right, about) {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (right(answer)) return answer;
    if (Date.now() > until) assert.fail(`${about}: ${JSON.stringify(answer)}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** The room as the server sees it. */
export const roomOf = (server, room) => server.operate("GET", `/rooms/${room}`);
