// The README's pictures, taken from a demo that runs: node server/tests/demo/pictures.mjs DIR
// WAITROOM_BIN names the program (with the console in it). Run by `cargo xtask screenshots`.
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const repo = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const { openBrowser } = await import(join(repo, "crates/pages/browser/parts.mjs"));
const folder = process.argv[2];
if (!folder) { console.error("usage: pictures.mjs DIR"); process.exit(64); }
mkdirSync(folder, { recursive: true });

const program = process.env.WAITROOM_BIN || join(repo, "target/debug/waitroom");
const env = { ...process.env };
delete env.WAITROOM_ADMIN_KEY;
const play = async (...more) => {
  const demo = spawn(program, ["demo", "--quiet", "--addresses-json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", ...more],
    { env, stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise((tell, fail) => {
    createInterface({ input: demo.stdout }).once("line", tell);
    demo.once("exit", code => fail(new Error(`the demo ended with ${code}`)));
  });
  const began = Date.now();
  return {
    at: JSON.parse(line),
    second: wanted => new Promise(done => setTimeout(done, Math.max(0, began + wanted * 1000 - Date.now()))),
    end: () => new Promise(done => { demo.removeAllListeners("exit"); demo.once("exit", done); demo.kill("SIGINT"); }),
  };
};

const browser = await openBrowser();
// WebP by the browser itself: a third of the size of a PNG.
const shoot = async (page, name, clip) => {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 82, ...(clip && { clip: { ...clip, scale: 1 } }) });
  writeFileSync(join(folder, `${name}.webp`), Buffer.from(data, "base64"));
  console.log(`${name}.webp  ${Math.round(data.length * 0.75 / 1024)} KB`);
};
const open = async (url, options) => {
  const page = await (await browser.newContext({ locale: "en", ...options })).newPage();
  await page.goto(url);
  return page;
};
const phone = { colorScheme: "dark", viewport: { width: 390, height: 844 } }, desk = { viewport: { width: 1180, height: 800 } };
const place = page => page.locator("#number").filter({ hasText: /\d/ }).waitFor();
const shows = [];
try {
  // A rush, in which the shop is slow for a while: the console has something to show.
  const rush = await play("--fast", "--visitors", "1500", "--seats", "900");
  shows.push(rush);
  const { at } = rush;
  const office = await open(`http://${at.admin}/console/`, { viewport: { width: 1280, height: 900 } });
  await office.getByLabel("API key").fill(at.key);
  await office.getByRole("button", { name: "Sign in" }).click();
  await office.getByRole("heading", { name: "Rooms" }).waitFor();
  await office.evaluate(() => { location.hash = "#/rooms/default"; });
  const guest = await open(`http://${at.public}/`, desk), walker = await open(`http://${at.public}/`, phone);
  await place(guest);
  await place(walker);
  await office.getByRole("button", { name: "2 min" }).click();
  await rush.second(41);
  await shoot(office, "console");
  // After the pace has settled the page knows again how long it will take.
  await guest.locator("#wait").filter({ hasText: /\d/ }).waitFor({ timeout: 6000 }).catch(() => {});
  await shoot(guest, "waiting");
  await shoot(walker, "waiting-dark-phone");

  // A quiet evening, in which one comes to the hall soon and half of it is sold.
  const evening = await play("--visitors", "70", "--seats", "200");
  shows.push(evening);
  const first = await open(`http://${evening.at.public}/`, desk), second = await open(`http://${evening.at.public}/`, phone);
  await evening.second(25);
  for (const [page, name] of [[first, "shop"], [second, "shop-dark-phone"]]) {
    await page.locator("form.hall").waitFor({ timeout: 60000 });
    await page.reload();
    for (const box of [20, 21]) await page.locator("input[name=seat]").nth(box).check({ force: true });
    await page.evaluate(() => scrollTo(0, 0));
    await shoot(page, name);
  }
} finally {
  await browser.close();
  for (const show of shows) await show.end();
}
