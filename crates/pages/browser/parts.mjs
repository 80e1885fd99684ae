// What the browser tests and the screenshots share: a renderer of pages, Chromium, axe.
//
// playwright-core and axe-core are installed into a folder of their own (WAITROOM_BROWSER_PARTS, or
// a folder below the system's temporary one) the first time they are needed.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const PARTS = { "playwright-core": "1.65.0", "axe-core": "4.14.0" };
const folder = process.env.WAITROOM_BROWSER_PARTS || join(tmpdir(), "waitroom-browser-parts");

const missing = Object.entries(PARTS).filter(([name, version]) => {
  const file = join(folder, "node_modules", name, "package.json");
  return !existsSync(file) || JSON.parse(readFileSync(file)).version !== version;
});
if (missing.length) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "package.json");
  if (!existsSync(file)) writeFileSync(file, "{\"private\": true}");
  const wanted = Object.entries(PARTS).map(([name, version]) => `${name}@${version}`);
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--silent", ...wanted], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
}
const need = createRequire(join(folder, "package.json"));
const { chromium } = need("playwright-core");
const axeSource = need("axe-core").source;

// Chromium of the machine, without what it would ask the network for by itself.
export const openBrowser = (options = {}) => {
  const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error("chromium is needed for this test: apt-get install chromium");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], ...options });
};

// A browser with a profile on disk, to close and open again.
export const openPersistent = folder => chromium.launchPersistentContext(folder, { executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], viewport: { width: 390, height: 844 }, locale: "en" });

// Asks the Rust side for pages, one after the other.
export const openRenderer = () => {
  const program = process.env.RENDER_PAGE;
  if (!program) throw new Error("RENDER_PAGE must name the program render-page: cargo build -p waitroom-pages --bin render-page");
  const child = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = [];
  createInterface({ input: child.stdout }).on("line", line => waiting.shift()(JSON.parse(line)));
  child.on("exit", code => waiting.forEach(tell => tell({ failed: code })));
  return {
    render: wanted => new Promise(tell => {
      waiting.push(tell);
      child.stdin.write(JSON.stringify({ room: "preview", title: "Autumn Lights Festival", ...wanted }) + "\n");
    }),
    close: () => child.stdin.end(),
  };
};

// What axe complains about on the page as it is now: rules of WCAG 2.2 AA and good practice.
export const complaints = async page => {
  // The policy of the page forbids foreign scripts; the debugger may run one.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return violations.map(it => `${it.id}: ${it.help}: ${it.nodes.map(node => node.html + " " + (node.failureSummary || "")).join(" | ")}`);
};
