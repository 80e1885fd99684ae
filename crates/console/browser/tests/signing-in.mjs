// Keys, roles, and the end of a session.
import assert from "node:assert/strict";
import { KEY, goTo, signIn } from "../site.mjs";
import { eventually } from "./eventually.mjs";

export function tell(promise) {
  promise("a wrong key is told at the field, a good one opens the console", { key: null }, async ({ page, site }) => {
    await signIn(page, site, "wrk_not_a_key");
    await page.getByText("This key is not known").first().waitFor();
    assert.equal(await page.getByLabel("API key").getAttribute("aria-invalid"), "true");
    await page.getByLabel("API key").fill(KEY);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    await eventually(() => page.locator(".who").innerText(), (text) => /owner/.test(text), "who I am");
  });

  promise("a reload keeps the session, signing out forgets the key", {}, async ({ page }) => {
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, document.cookie])), '[{},""]');
    await page.reload();
    await page.getByLabel("API key").waitFor();
  });

  promise("the key is in no address and in no lasting store", {}, async ({ page }) => {
    const seen = [];
    page.on("request", (request) => seen.push(request.url()));
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    await page.waitForRequest(/\/admin\/v1\/rooms$/);
    assert.ok(seen.length > 0);
    assert.ok(seen.every((url) => !url.includes(KEY)), seen.join(" "));
    assert.equal(await page.evaluate((key) => JSON.stringify({ ...localStorage }).includes(key), KEY), false);
  });

  promise("whoever's key is revoked is signed out and told", { key: null }, async ({ page, site, server }) => {
    const key = await server.operate("POST", "/keys", { role: "operator", note: "soon gone" });
    await signIn(page, site, key.key);
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    await server.operate("DELETE", `/keys/${key.id}`);
    await page.getByText("Your key is no longer accepted").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  });

  promise("a viewer sees everything and is offered nothing", { key: null }, async ({ page, site, server }) => {
    await server.operate("PUT", "/rooms/looked-at", { title: "Looked at", lanes: ["main", "other"], rate: null, queue_all: true });
    const { support_code } = await server.join("looked-at");
    const key = await server.operate("POST", "/keys", { role: "viewer", note: "" });
    await signIn(page, site, key.key);
    await page.getByRole("link", { name: /Looked at/ }).click();
    await page.getByText("may look at this room, not change it").waitFor();
    assert.equal(await page.getByRole("button", { name: /…$/ }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "Keys" }).count(), 0);
    await goTo(page, "#/rooms/looked-at/settings");
    await page.getByText("Your key may look, not change.").waitFor();
    assert.ok(await page.getByLabel("Title").isDisabled());
    await goTo(page, "#/rooms/looked-at/tickets");
    await page.getByLabel("Find a ticket").fill(support_code);
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("article").waitFor();
    assert.equal(await page.getByRole("button", { name: "Revoke…" }).count(), 0);
    await goTo(page, "#/keys");
    await page.getByText("Keys are an owner’s business.").waitFor();
  });

  promise("an operator changes the pace and not the title", { key: null }, async ({ page, site, server }) => {
    await server.operate("PUT", "/rooms/operated", { title: "Operated", rate: "5/s" });
    const key = await server.operate("POST", "/keys", { role: "operator", note: "" });
    await signIn(page, site, key.key);
    await goTo(page, "#/rooms/operated/settings");
    await page.getByText("the rest takes an owner’s").waitFor();
    assert.ok(await page.getByLabel("Title").isDisabled());
    await page.getByLabel("Pace", { exact: true }).fill("7/s");
    await page.getByRole("button", { name: "Review and save…" }).click();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await eventually(() => server.operate("GET", "/rooms/operated"), (room) => room.rate === "7/s", "the pace");
  });
}
