// Who may, and who did.
import assert from "node:assert/strict";
import { goTo } from "../site.mjs";
import { eventually } from "./eventually.mjs";

const who = async (server, key) => {
  const response = await fetch(`${server.admin}/admin/v1/me`, { headers: { Authorization: `Bearer ${key}` } });
  return [response.status, (await response.json()).role];
};

export function tell(promise) {
  promise("a key is shown once, works, is rotated and revoked", {}, async ({ page, server }) => {
    await goTo(page, "#/keys");
    await page.getByRole("button", { name: "New key…" }).click();
    await page.getByLabel("Role").selectOption("operator");
    await page.getByLabel("Note").fill("Night shift");
    await page.getByLabel("Ends after").fill("soon");
    await page.getByRole("button", { name: "Make the key" }).click();
    await page.locator(".field.wrong", { hasText: "Ends after" }).waitFor();
    await page.getByLabel("Ends after").fill("30d");
    await page.getByRole("button", { name: "Make the key" }).click();
    const first = await page.locator(".secret code").innerText();
    assert.deepEqual(await who(server, first), [200, "operator"]);
    await page.getByRole("button", { name: "I have it" }).click();
    assert.ok(!(await page.content()).includes(first), "it is nowhere any more");

    const card = page.locator(".keys li", { hasText: "Night shift" });
    await card.getByRole("button", { name: /^Rotate/ }).click();
    await page.getByLabel("The old one works for").fill("0s");
    await page.getByRole("button", { name: "Make its follower" }).click();
    const second = await page.locator(".secret code").innerText();
    await page.keyboard.press("Escape");
    assert.notEqual(first, second);
    assert.deepEqual(await who(server, second), [200, "operator"]);
    assert.equal((await who(server, first))[0], 401);

    await page.locator(".keys li:not(.ended)", { hasText: "Night shift" }).getByRole("button", { name: /^Revoke/ }).click();
    await page.getByRole("button", { name: "Revoke the key" }).click();
    await eventually(() => who(server, second), ([status]) => status === 401, "it ended");
    await page.locator(".keys li.ended", { hasText: "Night shift" }).first().waitFor();
  });

  promise("the audit says who did what, newest first, and goes on by itself", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/watched", { title: "Watched", rate: "5/s" });
    await server.operate("PATCH", "/rooms/watched", { rate: "9/s" });
    await goTo(page, "#/audit");
    const first = page.locator(".audit li").first();
    await first.getByText("watched").waitFor();
    const told = /owner changed the settings of watched.*rate: 5\/s → ?to ?9\/s/;
    await eventually(() => first.innerText(), (text) => told.test(text.replaceAll(/\s+/g, " ")), "who changed what");
    await server.operate("POST", "/rooms/watched/pause", { reason: "Lunch." });
    await page.locator(".audit li").first().getByText("Lunch.").waitFor();
    await goTo(page, "#/rooms/watched/audit");
    await page.locator(".audit li", { hasText: "Lunch." }).waitFor();
    await eventually(() => page.locator(".audit li").count(), (count) => count === 3, "only of this room");
  });

  promise("the log and the report of a room are read, and the report is taken along", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/told-of", { title: "Told of", queue_all: true, rate: null });
    await server.crowd("told-of", 5);
    await goTo(page, "#/rooms/told-of/log");
    await page.getByRole("cell", { name: "joined" }).first().waitFor();
    await goTo(page, "#/rooms/told-of/report");
    const joined = page.locator(".figure", { hasText: "joined" }).locator("dd");
    await joined.waitFor();
    await eventually(() => joined.innerText(), (text) => text === "5", "all who joined");
    const [taken] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download as CSV" }).click()]);
    assert.equal(taken.suggestedFilename(), "told-of.csv");
  });
}
