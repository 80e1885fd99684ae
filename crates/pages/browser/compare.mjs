// Compares what Rust says about numbers, plurals and intervals (JSON on stdin) with Intl and with
// the page's own script; and how that reads telephone numbers with how people write them.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runInThisContext } from "node:vm";

runInThisContext(readFileSync(join(dirname(fileURLToPath(import.meta.url)), "../pages/page.js"), "utf8"));
const wrong = [];
let count = 0;
for (const { tag, words, numbers, spans } of JSON.parse(readFileSync(0, "utf8"))) {
  const rules = new Intl.PluralRules(tag), figures = new Intl.NumberFormat(tag), page = waitroom.speaker(tag, words);
  const same = (what, ours, theirs) => { count++; if (ours !== theirs) wrong.push(`${tag} ${what}: ours ${JSON.stringify(ours)}, theirs ${JSON.stringify(theirs)}`); };
  for (const [n, category, text] of numbers) {
    same(`category of ${n}`, category, rules.select(n));
    same(`figures of ${n}`, text, figures.format(n));
  }
  for (const [low, high, text] of spans) same(`${low} to ${high} s`, text, page.span(low, high));
  for (const unit of ["minute", "hour"]) {
    const format = new Intl.NumberFormat(tag, { style: "unit", unit, unitDisplay: "long" });
    for (const [n] of numbers.filter(([n]) => n > 2 && n < 211)) {
      same(`${n} ${unit}`, page.t(unit, { count: n, n: figures.format(n) }), format.format(n));
    }
  }
}
for (const [written, read] of [
  ["+49 (0) 171 / 123-45.67", "+491711234567"], [" +1 (212) 555 0100 ", "+12125550100"], ["+44\u00a07700[900]123", "+447700900123"],
  ["+٩٦٦٥٠١٢٣٤٥٦٧", "+966501234567"], ["+۹۸۹۱۲۳۴۵۶۷۸۹", "+989123456789"], ["+९१९८७६५४३२१०", "+919876543210"], ["+৮৮০১৭১২৩৪৫৬৭", "+880171234567"],
  // What cannot be meant is left for the server to refuse.
  ["+49 171 1234567 ext 5", "+491711234567ext5"], ["+49171O234567", "+49171O234567"], ["１２３", "１２３"],
]) {
  count++;
  if (waitroom.phone(written) !== read) wrong.push(`${written}: read as ${waitroom.phone(written)}, not ${read}`);
}
if (wrong.length) { console.log(wrong.slice(0, 60).join("\n")); process.exit(1); }
console.log(`compared ${count}`);
