// The editor: mistakes at their fields, only what was changed is sent, nobody is overtaken unseen.
import assert from "node:assert/strict";
import { goTo } from "../site.mjs";
import { eventually, roomOf } from "./eventually.mjs";

const save = async (page) => {
  await page.getByRole("button", { name: "Review and save…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
};

export function tell(promise) {
  promise("every mistake is told at its field, in the server's words, and nothing is lost", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/edited", { title: "Edited", rate: "5/s" });
    await goTo(page, "#/rooms/edited/settings");
    await page.getByLabel("Tick", { exact: true }).fill("5");
    await page.getByLabel("Pace", { exact: true }).fill("fast");
    await page.getByRole("button", { name: "Add a lane" }).click();
    await page.getByLabel("Name of lane 2").fill("vip");
    await page.getByLabel("Weight of lane 2").fill("-1");
    await save(page);
    await page.getByText("3 settings are not right").waitFor();
    await page.locator(".field.wrong", { hasText: "Tick" }).getByText("has no unit").waitFor();
    await page.locator(".field.wrong", { hasText: "Pace" }).getByText("is not a pace").waitFor();
    await page.locator(".field.wrong", { hasText: "Lanes" }).getByText("lanes[1].weight").waitFor();
    const pace = page.getByLabel("Pace", { exact: true });
    assert.deepEqual([await pace.getAttribute("aria-invalid"), await pace.inputValue()], ["true", "fast"]);
    assert.equal((await roomOf(server, "edited")).settings.tick, "200ms", "nothing was changed");
    await page.getByLabel("Tick", { exact: true }).fill("500ms");
    await pace.fill("9/s");
    await page.getByLabel("Weight of lane 2").fill("2");
    await save(page);
    await page.getByText("3 settings were changed.").waitFor();
    const { settings } = await roomOf(server, "edited");
    assert.deepEqual([settings.tick, settings.rate, settings.lanes], ["500ms", "9/s", [{ name: "main", weight: 1 }, { name: "vip", weight: 2 }]]);
    await page.getByText("Nothing changed").waitFor();
  });

  promise("of two who change different things neither takes back what the other did", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/twice", { title: "Twice", rate: "5/s", max_active: 10 });
    await goTo(page, "#/rooms/twice/settings");
    await page.getByLabel("Title").fill("Twice edited");
    await page.getByLabel("Pace", { exact: true }).fill("8/s");
    await server.operate("PATCH", "/rooms/twice", { rate: "6/s", max_active: 20 });
    await page.getByText("Meanwhile somebody set it to 6/s.").waitFor();
    await eventually(() => page.getByLabel("Inside at most").inputValue(), (value) => value === "20", "what I did not touch follows");
    await page.getByLabel("Pace", { exact: true }).fill("6/s");
    await save(page);
    const { settings } = await roomOf(server, "twice");
    assert.deepEqual([settings.title, settings.rate, settings.max_active], ["Twice edited", "6/s", 20]);
  });

  promise("a draw before a start is set in local time and shown with its course", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/drawn", { title: "Drawn", opens_at: "2099-01-01T00:00:00Z", starts_at: "2099-06-01T00:00:00Z" });
    await goTo(page, "#/rooms/drawn/schedule");
    await page.getByText("No draw: whoever comes first").first().waitFor();
    await page.getByLabel("Doors open").fill("2026-01-01T09:00:00");
    await page.getByLabel("Sale starts").fill("2099-07-01T12:00:00");
    await page.getByLabel("Draw", { exact: true }).selectOption("committed");
    await save(page);
    await eventually(() => roomOf(server, "drawn"), (room) => room.status === "held", "doors are open");
    const { settings } = await roomOf(server, "drawn");
    // The tab is in Berlin, two hours ahead in July.
    assert.deepEqual([settings.starts_at.slice(0, 19), settings.draw], ["2099-07-01T10:00:00", true]);
    await server.crowd("drawn", 3);
    await page.getByText("3 take part so far.").waitFor();
    await page.locator(".timeline .next", { hasText: "Sale starts" }).waitFor();
  });

  promise("a setting that this console does not know is still there, as JSON", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/newer", { title: "Newer" });
    const sent = [];
    await page.route("**/admin/v1/rooms", async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      for (const room of body.rooms) if (room.room === "newer") room.settings.from_tomorrow = { a: 1 };
      await route.fulfill({ json: body });
    });
    await page.route("**/admin/v1/rooms/newer", async (route) => {
      sent.push(route.request().postDataJSON());
      await route.fulfill({ json: {} });
    });
    await goTo(page, "#/rooms/newer/settings");
    await page.getByLabel("from_tomorrow").fill('{"a": 2}');
    await page.getByLabel("from_tomorrow").blur();
    await save(page);
    assert.deepEqual(sent, [{ from_tomorrow: { a: 2 } }]);
  });
}
