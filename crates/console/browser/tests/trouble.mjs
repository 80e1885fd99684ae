// When things fail, and when somebody means harm.
import assert from "node:assert/strict";
import { goTo } from "../site.mjs";

const HOSTILE = [
  "<script>globalThis.owned = 1</script>",
  "<img src=x onerror='globalThis.owned = 1'>",
  "\"><svg onload=globalThis.owned=1>",
  "javascript:globalThis.owned=1",
  "{{constructor.constructor('globalThis.owned=1')()}}",
];

export function tell(promise) {
  promise("a lost connection is said with the age of what is shown, moves nothing, and heals", {}, async ({ page, site, server }) => {
    await server.operate("PUT", "/rooms/cut-off", { title: "Cut off" });
    await goTo(page, "#/rooms/cut-off");
    await page.locator(".plot canvas").first().waitFor();
    const where = () => page.locator(".charts").boundingBox();
    const before = await where();
    site.cut = true;
    try {
      await page.getByText("Connection lost.").waitFor();
      await page.getByText(/The data is \d+ s old/).waitFor();
      assert.deepEqual(await where(), before, "nothing moved");
      const { y, height } = await page.locator(".stale").boundingBox();
      assert.ok(y >= 0 && y + height <= page.viewportSize().height, `the banner is on the screen, not at ${y}`);
      await page.getByRole("button", { name: "Pause…" }).click();
      await page.getByLabel("Reason for visitors").fill("Nobody hears this.");
      await page.getByRole("button", { name: "Pause the room" }).click();
      await page.getByRole("dialog").getByText("The server cannot be reached.").waitFor();
      assert.equal(await page.getByLabel("Reason for visitors").inputValue(), "Nobody hears this.", "what was typed stays");
      await page.keyboard.press("Escape");
    } finally {
      site.cut = false;
    }
    await page.getByText("Connection lost.").waitFor({ state: "detached" });
    await page.getByText("Live", { exact: true }).first().waitFor();
  });

  promise("texts of others stay texts, in every view", {}, async ({ page, server }) => {
    for (const [at, text] of HOSTILE.entries()) {
      const room = `hostile-${at}`;
      await server.operate("PUT", `/rooms/${room}`, { title: text, message: text, queue_all: true, lanes: ["main", `l${at}`], rate: null });
      const { support_code } = await server.join(room, { user_id: text });
      await server.operate("POST", `/rooms/${room}/pause`, { reason: text });
      await server.operate("POST", "/keys", { role: "viewer", note: text });
      for (const view of ["", "/schedule", "/settings", "/log", "/audit", "/report"]) {
        await goTo(page, `#/rooms/${room}${view}`);
        await page.getByRole("heading", { name: text }).waitFor();
        await page.locator(".loading").waitFor({ state: "detached" });
      }
      await goTo(page, `#/rooms/${room}/tickets`);
      await page.getByLabel("Find a ticket").fill(text);
      await page.getByRole("button", { name: "Find" }).click();
      await page.getByRole("article", { name: support_code }).waitFor();
    }
    for (const view of ["#/rooms", "#/keys", "#/audit", `#/rooms/${encodeURIComponent(HOSTILE[1])}`]) {
      await goTo(page, view);
      await page.getByText(HOSTILE[1]).first().waitFor();
    }
    assert.equal(await page.evaluate(() => globalThis.owned), undefined);
    assert.equal(await page.locator("main script, main img").count(), 0);
  });

  promise("an address that leads nowhere says so", {}, async ({ page }) => {
    await goTo(page, "#/nowhere");
    await page.getByText("leads to no view").waitFor();
    await goTo(page, "#/rooms/no-such-room");
    await page.getByText("There is no room called “no-such-room”.").waitFor();
    await page.getByRole("link", { name: "All rooms" }).click();
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
  });

  promise("a disk that takes nothing is said where the room is looked at", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/full-disk", { title: "Full disk" });
    await page.route("**/admin/v1/rooms", async (route) => {
      const body = await (await route.fetch()).json();
      for (const room of body.rooms) if (room.room === "full-disk") room.store_trouble = "no space left on device";
      await route.fulfill({ json: body });
    });
    await page.getByRole("link", { name: /Full disk.*no space left on device/ }).click();
    await page.getByRole("alert").getByText("no space left on device").waitFor();
  });

  promise("a server without rooms is not an error", {}, async ({ page }) => {
    await page.route("**/admin/v1/rooms", (route) => route.fulfill({ json: { rooms: [] } }));
    await page.getByText("There is no room yet.").waitFor();
  });
}
