// What the tests and the screenshots share: a real server, a small site that hands out the built
// console as the binary will (same paths, same policy) and passes /admin/v1 on, a crowd, Chromium.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "../web/dist");
export const KEY = "browser-test-owner-key";
const axeSource = createRequire(import.meta.url)("axe-core").source;

/** The policy that the crate serves, read where it stands, so that the two cannot differ. */
export const CSP = /CSP: &str = "([^"]+)"/.exec(readFileSync(join(here, "../src/lib.rs"), "utf8"))[1].replaceAll(/\\\n\s*/g, "");

function program() {
  const found = process.env.WAITROOM_BIN ?? join(here, "../../../target/debug/waitroom");
  if (!existsSync(found)) throw new Error(`no server at ${found}: cargo build -p waitroom, or set WAITROOM_BIN`);
  return found;
}

/** A development server on ports of its own, and its end; `config` is what its file says. */
export async function startServer(config) {
  const data = mkdtempSync(join(tmpdir(), "waitroom-console-"));
  const file = join(data, "server.toml");
  if (config) writeFileSync(file, config);
  const child = spawn(program(), ["serve", ...(config ? ["--config", file] : []), "--dev", "--addresses-json", "--public", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", join(data, "rooms")],
    { env: { ...process.env, WAITROOM_ADMIN_KEY: KEY }, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (bytes) => { said += bytes; });
  const line = await new Promise((tell, fail) => {
    createInterface({ input: child.stdout }).once("line", tell);
    child.once("exit", () => fail(new Error(`the server did not start: ${said}`)));
  });
  const addresses = JSON.parse(line);
  const server = {
    public: `http://${addresses.public}`,
    admin: `http://${addresses.admin}`,
    /** As an operator with the owner's key. */
    async operate(method, path, body) {
      const response = await fetch(`${server.admin}/admin/v1${path}`, {
        method, headers: { "X-Api-Key": KEY, "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
      return answer;
    },
    /** Somebody joins; a service may say who and in which lane. */
    async join(room, who) {
      const response = await fetch(`${server.public}/v1/rooms/${room}/join`, {
        method: "POST", headers: { "X-Api-Key": KEY, "Content-Type": "application/json" }, body: JSON.stringify(who ?? {}),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(`join ${room}: ${JSON.stringify(answer)}`);
      return answer;
    },
    async crowd(room, count, who) {
      const joined = [];
      for (let at = 0; at < count; at += 20) {
        joined.push(...await Promise.all(Array.from({ length: Math.min(20, count - at) }, (_, i) => server.join(room, who?.(at + i)))));
      }
      return joined;
    },
    async stop() {
      if (child.exitCode === null) {
        const ended = new Promise((tell) => child.once("exit", tell));
        child.kill("SIGTERM");
        const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
        await ended;
        clearTimeout(timer);
      }
      rmSync(data, { recursive: true, force: true });
    },
  };
  return server;
}

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };

/** The console and the API on one address. `cut` makes the API unreachable. */
export async function startSite(server) {
  if (!existsSync(join(dist, "index.html"))) throw new Error("the console is not built: cargo xtask console");
  const site = { cut: false };
  const listener = createServer((asked, answer) => {
    const path = new URL(asked.url, "http://site").pathname;
    if (path.startsWith("/admin/v1/")) return site.cut ? asked.destroy() : passOn(server, asked, answer);
    const name = path.replace(/^\/console\/?/, "") || "index.html";
    const file = join(dist, name);
    if (!path.startsWith("/console") || name.includes("..") || !existsSync(file)) return answer.writeHead(404).end();
    answer.writeHead(200, { "Content-Type": TYPES[extname(name)] ?? "application/octet-stream", "Content-Security-Policy": CSP });
    answer.end(readFileSync(file));
  });
  await new Promise((tell) => listener.listen(0, "127.0.0.1", tell));
  site.url = `http://127.0.0.1:${listener.address().port}/console/`;
  site.stop = () => { listener.closeAllConnections(); listener.close(); };
  return site;
}

function passOn(server, asked, answer) {
  const onward = request(server.admin + asked.url, { method: asked.method, headers: asked.headers }, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  onward.on("error", () => answer.destroy());
  asked.pipe(onward);
}

/** Chromium of the machine. */
export function openBrowser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error("chromium is needed: apt-get install chromium");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"] });
}

/** A tab that notes everything that should not be: errors of the page and breaches of its policy. */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en", timezoneId: "Europe/Berlin", ...options });
  await context.addInitScript(() => {
    globalThis.breaches = [];
    document.addEventListener("securitypolicyviolation", (event) => globalThis.breaches.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.wrongs = [];
  page.on("pageerror", (error) => page.wrongs.push(String(error)));
  return page;
}

export async function signIn(page, site, key = KEY) {
  await page.goto(site.url);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Goes to a view without loading the page again. */
export async function goTo(page, hash) {
  await page.evaluate((hash) => { location.hash = hash; }, hash);
}

/** What axe complains about on the page as it is now. The debugger may run what the policy forbids. */
export async function complaints(page) {
  const { violations } = await page.evaluate(`(() => { ${axeSource}; return axe.run(document, { resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }); })()`);
  return violations.map((it) => `${it.id}: ${it.help}: ${it.nodes.map((node) => `${node.html} ${node.failureSummary ?? ""}`).join(" | ")}`);
}
