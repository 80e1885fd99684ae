// Every state of the waiting page as a picture: node crates/pages/browser/screenshots.mjs DIR [only]
//
// light, dark and phone for each state, right-to-left for some, contrast and a theme. RENDER_PAGE
// names the program render-page; without it the debug build is used.
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const repo = join(dirname(fileURLToPath(import.meta.url)), "../../..");
process.env.RENDER_PAGE ||= join(repo, "target/debug/render-page");
const { openBrowser, openRenderer } = await import("./parts.mjs");

const [folder, only] = process.argv.slice(2);
if (!folder) { console.error("usage: screenshots.mjs DIR [NAME]"); process.exit(64); }
if (!existsSync(process.env.RENDER_PAGE)) { console.error("first: cargo build -p waitroom-pages --bin render-page"); process.exit(69); }
mkdirSync(folder, { recursive: true });

const STATES = ["finding", "waiting", "next", "long", "unknown", "paused", "maintenance", "before", "draw", "drawing", "not_open",
  "turn", "ended", "sold_out", "lost", "lost_no_show", "left", "moved", "full", "error", "privacy"];
const DESK = { width: 1280, height: 860 }, PHONE = { width: 390, height: 844 };
const theme = { accent: "#5b2a86", accent_dark: "#d3b3f2", paper: "#f4f0fa", logo: { url: "data:image/svg+xml;base64," +
  Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 40'><circle cx='20' cy='20' r='19' fill='#5b2a86'/><path d='M8 26q12-22 24 0' fill='none' stroke='#fff' stroke-width='3'/></svg>").toString("base64"), alt: "" } };
const template = "<div class=\"t-card t-center\"><h2>Doors at seven, lights at eight</h2><p class=\"t-muted\">{{#waitTimeKnown}}About {{waitTime}} minutes until you are in.{{/waitTimeKnown}}{{^waitTimeKnown}}We do not know yet how long it takes.{{/waitTimeKnown}}</p></div>\n{{> waiting}}\n<p class=\"t-small t-muted t-center\">Each person can buy four tickets.</p>";

const shots = STATES.flatMap(state => [
  { name: `${state}-light`, state },
  { name: `${state}-dark`, state, colorScheme: "dark" },
  { name: `${state}-phone`, state, viewport: PHONE },
]).concat(["waiting", "paused", "turn", "lost", "privacy"].map(state => ({ name: `${state}-rtl`, state, language: "ar", title: "مهرجان أضواء الخريف" })))
  .concat([["de", "Herbstlichter"], ["uk", "Осінні вогні"], ["fi", "Syksyn valot"], ["he", "אורות הסתיו"]].map(([language, title]) => ({ name: `waiting-${language}`, state: "waiting", language, title, viewport: PHONE })))
  .concat([{ name: "waiting-contrast", state: "waiting", contrast: "more" }, { name: "waiting-theme", state: "waiting", theme, template },
    { name: "waiting-theme-dark", state: "waiting", theme, template, colorScheme: "dark" },
    { name: "message-phone", state: "waiting", viewport: PHONE, message: "Row 12 to 18 are gone. Standing places are still there." },
    { name: "leave-phone", state: "waiting", viewport: PHONE, press: "leave" }, { name: "word-light", state: "waiting", press: "word" },
    { name: "word-phone", state: "waiting", viewport: PHONE, press: "word" }, { name: "word-rtl", state: "waiting", viewport: PHONE, press: "word", language: "ar", colorScheme: "dark" }, { name: "small-phone", state: "waiting", viewport: { width: 320, height: 568 } }])
  .filter(({ name }) => !only || name.includes(only));

const browser = await openBrowser(), renderer = openRenderer();
for (const shot of shots) {
  const now = Date.now();
  const page = await renderer.render({ state: shot.state, accept_language: shot.language || "en", theme: shot.theme, template: shot.template,
    message: shot.message, now_ms: now, notices: shot.press === "word" ? ["push", "email", "sms"] : [], refresh_s: 10, draw: shot.state === "draw" ? "verifiable" : undefined, privacy_url: "/privacy",
    ...(shot.title ? { title: shot.title } : {}) });
  if (page.mistakes) throw new Error(JSON.stringify(page.mistakes));
  const context = await browser.newContext({ viewport: shot.viewport || DESK, colorScheme: shot.colorScheme || "light", deviceScaleFactor: 1,
    contrast: shot.contrast, reducedMotion: "reduce", locale: shot.language || "en" });
  // Somebody who has come a long way already.
  await context.addInitScript(() => localStorage.setItem("wr-preview", JSON.stringify({ ticket: "0b6c3a52-preview", since: 1, first: 3010, low: null })));
  await context.route("**/*", route => route.fulfill({ body: page.html, contentType: "text/html; charset=utf-8",
    headers: { "Content-Security-Policy": page.content_security_policy } }));
  const tab = await context.newPage();
  tab.on("pageerror", error => { throw error; });
  // Only a page that came by https is offered everything.
  await tab.goto("https://waitroom.example/");
  if (shot.press) await tab.click(`#${shot.press}`);
  await tab.screenshot({ path: join(folder, `${shot.name}.png`) });
  await context.close();
}
renderer.close();
await browser.close();
console.log(`${shots.length} pictures in ${folder}`);
