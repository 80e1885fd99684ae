// A person in the demo's line, in Chromium: waits, moves up, is let in, meets a declined card, buys.
// Then the same without script, on a phone in the dark. axe looks at every page of the shop.
import assert from "node:assert/strict";
const { DEMO_PUBLIC: site, DEMO_SHOP: shop, DEMO_ADMIN: admin, DEMO_KEY: key } = process.env;
const operate = async (what, body = {}) => {
  const answer = await fetch(`${admin}/admin/v1/rooms/default/${what}`, { method: "POST", body: JSON.stringify(body),
    headers: { "X-Api-Key": key, "Content-Type": "application/json" } });
  assert.ok(answer.ok, `${what}: ${answer.status}`);
};
// The room is held before anything slow happens, so that the person surely waits behind others.
await operate("pause", { reason: "One moment, please" });
const { openBrowser, complaints } = await import(process.env.PARTS_MODULE);
const browser = await openBrowser();
const wrong = [];
const someone = async options => {
  const context = await browser.newContext({ locale: "en", viewport: { width: 1100, height: 900 }, ...options });
  context.setDefaultTimeout(30000);
  context.on("page", page => {
    page.on("pageerror", error => wrong.push(String(error)));
    page.on("console", line => { if (/Content Security Policy|Refused to/.test(line.text())) wrong.push(line.text()); });
  });
  return context;
};
// Waits for a condition; says what was there instead when it does not come.
const soon = async (what, look, fits) => {
  const until = Date.now() + 60000;
  for (let found; ;) {
    found = await look().catch(error => error);
    if (fits(found)) return found;
    if (Date.now() > until) throw new Error(`${what}: found ${found}`);
    await new Promise(done => setTimeout(done, 50));
  }
};
const clean = async (page, what) => assert.deepEqual(await complaints(page), [], `axe, ${what}`);
const headline = page => page.locator("h1").first().innerText();
// The seats are small boxes under a picture of them; a person clicks on the box.
const pick = async (page, count) => {
  const boxes = page.locator("input[name=seat]:not(:checked)");
  for (let i = 0; i < count; i++) await boxes.nth(i).check({ force: true });
};

try {
  // Nobody is served at the shop's own address.
  const direct = await fetch(shop);
  assert.equal(direct.status, 403);

  const waiting = async () => (await (await fetch(`${admin}/admin/v1/rooms/default`, { headers: { "X-Api-Key": key } })).json()).waiting;
  await soon("others in line", waiting, it => it > 1);
  const context = await someone({});
  const page = await context.newPage();
  const first = await page.goto(site);
  assert.equal(first.status(), 503, "the waiting page, in place");
  const place = async () => Number((await page.locator("#number").innerText()).replace(/\D/g, ""));
  const began = await soon("a place behind others", place, it => it > 1);
  await operate("resume");
  const moved = await soon("moving up, or in already", async () => (await page.title()).includes("Autumn Lights") && await page.locator("form.hall").count() ? 0 : await place(), it => it < began);
  assert.ok(moved < began, `${began}, then ${moved}`);
  await soon("the hall", () => headline(page), it => it === "Choose your seats");
  assert.ok(!page.url().includes("wr_pass"), "the pass has left the address");
  await clean(page, "the hall");

  // Where the crowd does not go, so that nobody takes the seats meanwhile.
  await page.goto(`${site}/?part=3`);
  // Too many, none, then two.
  await pick(page, 5);
  await page.getByRole("button", { name: /Reserve/ }).click();
  assert.equal(await headline(page), "Which seats?");
  await clean(page, "which seats");
  await page.getByRole("link", { name: /Back/ }).click();
  await pick(page, 2);
  await page.getByRole("button", { name: /Reserve/ }).click();
  assert.equal(await headline(page), "Checkout");
  const seats = await page.locator(".seats li").allInnerTexts();
  assert.equal(seats.length, 2);
  await clean(page, "the checkout");
  await page.getByLabel("Your name").fill("Ana <script>alert(1)</script>");
  await page.getByLabel(/Card number/).fill("4000 0000 0000 0002");
  await page.getByRole("button", { name: /^Pay/ }).click();
  await page.getByText("Your card was declined").waitFor();
  await clean(page, "a card that was declined");
  await page.getByLabel("Your name").fill("Ana <script>alert(1)</script>");
  await page.getByLabel(/Card number/).fill("4242 4242 4242 4242");
  await page.getByRole("button", { name: /^Pay/ }).click();
  await soon("the order", () => headline(page), it => it.startsWith("Thank you, Ana"));
  assert.deepEqual(await page.locator(".seats li").allInnerTexts(), seats, "the seats that were reserved");
  await clean(page, "the order");

  // The visit is over: whoever comes back stands in line again.
  await operate("pause", { reason: "Done" });
  const again = await page.goto(site);
  assert.equal(again.status(), 503, "the waiting page again");
  await operate("resume");
  await context.close();

  // Without script, on a phone, in the dark.
  const plain = await someone({ javaScriptEnabled: false, colorScheme: "dark", viewport: { width: 390, height: 844 } });
  const phone = await plain.newPage();
  await phone.goto(site);
  await soon("the hall without script", () => headline(phone), it => it === "Choose your seats");
  const overflow = await phone.locator("main").evaluate(it => it.scrollWidth - it.clientWidth).catch(() => 0);
  assert.ok(overflow <= 1, `the hall is ${overflow} pixels too wide for a phone`);
  await phone.goto(`${site}/?part=3`);
  await phone.locator("input[name=seat]:not(:checked)").first().check({ force: true });
  await phone.getByRole("button", { name: /Reserve/ }).click();
  await phone.getByLabel("Your name").fill("Bo");
  await phone.getByRole("button", { name: /^Pay/ }).click();
  await soon("the order without script", () => headline(phone), it => it === "Thank you, Bo");
  await plain.close();

  // The dark hall, looked at by axe, which needs script.
  const dark = await someone({ colorScheme: "dark", viewport: { width: 390, height: 844 } });
  const night = await dark.newPage();
  await night.goto(site);
  await soon("the hall at night", () => headline(night), it => it === "Choose your seats");
  await clean(night, "the hall, dark, phone");
  assert.deepEqual(wrong, [], "no script error, nothing refused by the policy");
  console.log(`bought ${seats.join(" and ")}; waited at place ${began}, then ${moved}`);
} finally {
  await browser.close();
}
