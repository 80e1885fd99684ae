// The site behind a gate, as the operator of its room sees it.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { KEY, goTo, signIn, startServer, startSite } from "../site.mjs";
import { eventually, roomOf } from "./eventually.mjs";

/** A shop that takes `wait` ms to answer, and fails where its path says so. */
async function startShop() {
  const shop = { wait: 120 };
  const listener = createServer((asked, answer) => setTimeout(() => {
    answer.statusCode = asked.url.includes("broken") ? 500 : 200;
    answer.end("seats");
  }, shop.wait));
  await new Promise((ready) => listener.listen(0, "127.0.0.1", ready));
  shop.url = `http://127.0.0.1:${listener.address().port}`;
  shop.stop = () => { listener.closeAllConnections(); listener.close(); };
  return shop;
}

/** Asks the gate for a path of the shop; whatever lies under /assets is for everybody. */
function visit(server, path) {
  const { hostname, port } = new URL(server.public);
  return new Promise((done, fail) => {
    request({ hostname, port, path, headers: { Host: "shop.test" } }, (answer) => { answer.resume(); answer.on("end", () => done(answer.statusCode)); })
      .on("error", fail).end();
  });
}

export function tell(promise) {
  promise("how the site behind a room does is told and drawn", { key: null }, async ({ page }) => {
    const shop = await startShop();
    const server = await startServer(
      `[rooms.shop]\nrate = "10/s"\n[sites.shop]\nroom = "shop"\nhosts = ["shop.test"]\norigins = ["${shop.url}"]\nbypass = ["/assets/*"]\n`);
    const site = await startSite(server);
    try {
      await signIn(page, site, KEY);
      await goTo(page, "#/rooms/shop");
      const chart = page.locator("figure", { hasText: "Your site answers in" });
      await chart.waitFor();
      for (let at = 0; at < 6; at += 1) {
        assert.equal(await visit(server, "/assets/seat.svg"), 200);
        assert.equal(await visit(server, "/assets/broken.svg"), 500);
      }
      const told = await roomOf(server, "shop");
      assert.deepEqual([told.origin.asked, told.origin.bad, told.origin.living, told.origin.origins], [12, 6, 1, 1]);
      assert.ok(told.origin.ms >= 12 * 110, `each took as long as the shop takes: ${told.origin.ms} ms`);
      await eventually(() => chart.innerText(), (text) => /\d ms/.test(text) && /50 % failed/.test(text), "the chart says both");
    } finally {
      site.stop();
      await server.stop();
      shop.stop();
    }
  });

  promise("a room without a gate here has no such chart", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/plain", { title: "Plain", rate: "1/s" });
    await goTo(page, "#/rooms/plain");
    await page.locator("figure", { hasText: "Waiting" }).first().waitFor();
    assert.equal(await page.locator("figure", { hasText: "Your site answers in" }).count(), 0);
  });
}
