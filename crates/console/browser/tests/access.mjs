// For everybody: axe, the keyboard, a phone, little motion.
import assert from "node:assert/strict";
import { complaints, goTo } from "../site.mjs";
import { stage } from "../stage.mjs";

const VIEWS = [
  "#/rooms", "#/rooms/spring-tour", "#/rooms/spring-tour/settings", "#/rooms/members-draw/schedule", "#/rooms/spring-tour/log",
  "#/rooms/spring-tour/audit", "#/rooms/spring-tour/report", "#/rooms/merch", "#/rooms/nowhere", "#/nowhere", "#/audit", "#/keys",
];
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true };

let staged = null;
const settled = (page) => page.locator(".loading").waitFor({ state: "detached" });

export function tell(promise) {
  for (const colorScheme of ["light", "dark"]) {
    promise(`axe finds nothing on any view, ${colorScheme}`, { page: { colorScheme, reducedMotion: "reduce" } }, async ({ page, server, site }) => {
      staged ??= stage(server);
      const { somebody } = await staged;
      for (const view of VIEWS) {
        await goTo(page, view);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await settled(page);
        assert.deepEqual(await complaints(page), [], view);
      }
      await goTo(page, "#/rooms/merch/tickets");
      await page.getByLabel("Find a ticket").fill(somebody.support_code);
      await page.getByRole("button", { name: "Find" }).click();
      await page.getByRole("article").waitFor();
      assert.deepEqual(await complaints(page), [], "a ticket");
      await goTo(page, "#/rooms/spring-tour");
      for (const act of ["Pause…", "Admit…", "Pace…", "Capacity…", "Message…", "Drain…", "Maintenance…", "Finish…"]) {
        await page.getByRole("button", { name: act }).click();
        await page.getByRole("dialog").waitFor();
        assert.deepEqual(await complaints(page), [], act);
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
      await page.getByRole("button", { name: "Pace…" }).click();
      await page.getByLabel("Pace", { exact: true }).fill("fast");
      await page.keyboard.press("Enter");
      await page.locator(".mistake").waitFor();
      assert.deepEqual(await complaints(page), [], "a mistake");
      await page.keyboard.press("Escape");
      site.cut = true;
      await page.getByText("Connection lost.").waitFor();
      assert.deepEqual(await complaints(page), [], "a lost connection");
      site.cut = false;
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("API key").waitFor();
      assert.deepEqual(await complaints(page), [], "signing in");
    });
  }

  promise("the keyboard alone pauses a room, and the focus comes back", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/keyed", { title: "Keyed", queue_all: true });
    await goTo(page, "#/rooms/keyed");
    await page.getByRole("button", { name: "Pause…" }).waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    const tabTo = async (text) => {
      for (let presses = 0; presses < 40; presses += 1) {
        await page.keyboard.press("Tab");
        if ((await focused()) === text) return;
      }
      assert.fail(`${text} is not reached by Tab`);
    };
    await page.evaluate(() => document.querySelector(".skip").focus());
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main", "the skip link leads to the content");
    await tabTo("Pause…");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Pause: Keyed" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await focused(), "Pause…");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.waitForFunction(() => document.activeElement?.matches("dialog textarea"));
    await page.keyboard.type("By keyboard.");
    await tabTo("Pause the room");
    await page.keyboard.press("Enter");
    await page.getByText("Visitors read: “By keyboard.”").waitFor();
  });

  promise("on a phone every view fits the width", { page: PHONE }, async ({ page, server }) => {
    staged ??= stage(server);
    await staged;
    for (const view of [...VIEWS, "#/rooms/merch/tickets"]) {
      await goTo(page, view);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await settled(page);
      const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(wide <= window, `${view} is ${wide} wide on ${window}`);
    }
    await goTo(page, "#/rooms/spring-tour");
    for (const button of await page.locator(".controls button").all()) {
      const { height } = await button.boundingBox();
      assert.ok(height >= 44, `a finger needs 44, not ${height}`);
    }
  });

  promise("nothing moves while numbers come in", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/still", { title: "Still", queue_all: true, rate: null });
    await page.addInitScript(() => {
      globalThis.shifted = 0;
      new PerformanceObserver((list) => { for (const entry of list.getEntries()) globalThis.shifted += entry.value; }).observe({ type: "layout-shift", buffered: true });
    });
    await goTo(page, "#/rooms/still");
    await page.reload();
    await page.getByRole("img", { name: /^Waiting: 0 now/ }).waitFor();
    await page.evaluate(() => { globalThis.shifted = 0; });
    await server.crowd("still", 60);
    await page.getByRole("img", { name: /^Waiting: 60 now/ }).waitFor();
    await server.operate("POST", "/rooms/still/admit", { count: 30 });
    await page.getByRole("img", { name: /^Waiting: 30 now/ }).waitFor();
    await server.operate("POST", "/rooms/still/pause", { reason: "A line that was empty before." });
    await page.getByText("Visitors read").waitFor();
    // A number that gains a digit moves the word beside it; a browser calls 0.1 a good page.
    const shifted = await page.evaluate(() => globalThis.shifted);
    assert.ok(shifted < 0.001, `shifted by ${shifted}`);
  });

  promise("the colours are the system's unless somebody chose", { page: { colorScheme: "dark" } }, async ({ page }) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    const dark = await paper();
    await page.getByLabel("Colours").selectOption("light");
    const light = await paper();
    assert.notEqual(dark, light);
    await page.reload();
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    assert.equal(await paper(), light);
  });
}
