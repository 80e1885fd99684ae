// Pictures of every view, light and dark, wide and on a phone: `node screenshots.mjs DIR`.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { KEY, goTo, openBrowser, openPage, signIn, startServer, startSite } from "./site.mjs";
import { stage } from "./stage.mjs";

const folder = process.argv[2];
if (!folder) throw new Error("which folder? node screenshots.mjs DIR");
mkdirSync(folder, { recursive: true });

const server = await startServer();
const site = await startSite(server);
const browser = await openBrowser();
try {
  const show = await stage(server);
  const pages = [];
  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true }],
  ]) {
    const page = await openPage(browser, options);
    await page.goto(site.url);
    await page.getByLabel("API key").waitFor();
    await page.screenshot({ path: join(folder, `${name}-sign-in.png`) });
    await signIn(page, site, KEY);
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    pages.push([name, page]);
  }
  // A minute of a real sale, so that the charts have something to show.
  await show.run(Number(process.env.SHOW_S ?? 45));
  for (const [name, page] of pages) {
    const shoot = (what, options = {}) => page.screenshot({ path: join(folder, `${name}-${what}.png`), fullPage: true, ...options });
    await page.getByText("Spring tour").waitFor();
    await shoot("rooms");
    await goTo(page, "#/rooms/spring-tour");
    await page.locator(".plot canvas").nth(4).waitFor();
    await page.waitForTimeout(300);
    await shoot("live");
    await page.getByRole("button", { name: "Pause…" }).click();
    await shoot("pause", { fullPage: false });
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Pace…" }).click();
    await page.getByLabel("Pace", { exact: true }).fill("abc");
    await page.getByRole("button", { name: "Set the pace" }).click();
    await page.getByText("is not a pace").first().waitFor();
    await shoot("mistake", { fullPage: false });
    await page.keyboard.press("Escape");
    for (const tab of ["settings", "schedule", "log", "audit", "report"]) {
      await goTo(page, `#/rooms/spring-tour/${tab}`);
      await page.locator(".tabs a[aria-current=page]").waitFor();
      await page.locator(".loading").waitFor({ state: "detached" });
      await shoot(tab, { fullPage: tab !== "log" });
    }
    await goTo(page, "#/rooms/merch/tickets");
    await shoot("tickets-empty");
    await page.getByLabel("Find a ticket").fill(show.somebody.support_code);
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("article").waitFor();
    await shoot("tickets");
    await goTo(page, "#/rooms/members-draw/schedule");
    await page.locator(".timeline").waitFor();
    await shoot("draw");
    await goTo(page, "#/audit");
    await page.locator(".audit").waitFor();
    await shoot("audit-all");
    await goTo(page, "#/keys");
    await page.locator(".keys").waitFor();
    await shoot("keys");
    await goTo(page, "#/rooms/nowhere");
    await page.getByText("There is no room called").waitFor();
    await shoot("nowhere");
  }
  site.cut = true;
  for (const [name, page] of pages) {
    await goTo(page, "#/rooms/spring-tour");
    await page.getByText("Connection lost.").waitFor();
    await page.screenshot({ path: join(folder, `${name}-lost.png`) });
  }
} finally {
  await browser.close();
  site.stop();
  await server.stop();
}
