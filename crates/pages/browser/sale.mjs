// Pages through a whole sale: moments on stdin, one a line, each with the public board and with what
// the server would answer. A page gets one answer when its place is known, and from then on boards only.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runInThisContext } from "node:vm";

runInThisContext(readFileSync(join(dirname(fileURLToPath(import.meta.url)), "../pages/page.js"), "utf8"));
const pages = new Map(), wrong = [];

// The last bucket of a board reaches further than its people. To somebody who came later it would
// promise a place before those who came in between.
{
  const board = { version: 10, draw_pending: false, lanes: [{ lane: 0, from: 0, front: [1000], stretches: [{ size: 6, missing: [60] }] }] };
  const answer = { ticket: "late", version: 60, position: 1051, place: { lane: 0, order: 1050 } };
  const memory = waitroom.remember(null, answer);
  waitroom.see(memory, answer.position);
  waitroom.seeBoard(memory, answer, board);
  if (waitroom.position(board, answer.place) !== 1004 || memory.low !== 1051) wrong.push(`an old board was believed: ${memory.low}`);
}
let exact = 0, near = 0, worst = 0, rises = 0, before = null, bytes = 0, boards = 0;
for (const line of readFileSync(0, "utf8").trim().split("\n")) {
  const { board, answers } = JSON.parse(line);
  boards++;
  bytes = Math.max(bytes, JSON.stringify(board).length);
  answers.forEach((answer, i) => {
    if (!answer || answer.status !== "waiting" || answer.position === null) { if (answer && answer.status !== "waiting") pages.delete(i); return; }
    let page = pages.get(i);
    if (!page) {
      page = { answer, memory: waitroom.remember(null, answer), shown: Infinity };
      waitroom.see(page.memory, answer.position);
      pages.set(i, page);
      // A board from before the place may come late, from some cache.
      if (before) waitroom.seeBoard(page.memory, answer, before);
    }
    waitroom.seeBoard(page.memory, page.answer, board);
    // What would be shown without keeping the smallest: rises there are why we keep it.
    const raw = waitroom.position(board, page.answer.place);
    if (page.raw && raw > page.raw) rises++;
    page.raw = raw;
    const shown = page.memory.low, truth = answer.position;
    if (shown > page.shown) wrong.push(`page ${i} rose from ${page.shown} to ${shown}`);
    page.shown = shown;
    if (truth <= 1000) { exact++; if (shown !== truth) wrong.push(`page ${i} shows ${shown} for ${truth} in the front`); }
    else { near++; const off = Math.abs(shown - truth) / truth; worst = Math.max(worst, off); if (off > 0.01) wrong.push(`page ${i} shows ${shown} for ${truth}: ${(off * 100).toFixed(2)} %`); }
  });
  before = board;
}
console.log(`${boards} boards of at most ${bytes} bytes; ${exact} positions within the first 1,000, exact; ${near} beyond, at most ${(worst * 100).toFixed(3)} % off; ${rises} rises kept from sight`);
if (exact < 500 || near < 10000) wrong.push("too few positions were compared");
if (wrong.length) { console.log(wrong.length + " wrong\n" + wrong.slice(0, 20).join("\n")); process.exit(1); }
