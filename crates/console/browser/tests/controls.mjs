// What an operator does while a sale runs, and what becomes of the visitors.
import assert from "node:assert/strict";
import { goTo } from "../site.mjs";
import { eventually, roomOf } from "./eventually.mjs";

const act = (page, name) => page.getByRole("group", { name: "Controls" }).getByRole("button", { name }).click();
const confirm = (page, name) => page.getByRole("dialog").getByRole("button", { name }).click();
const closed = (page) => page.getByRole("dialog").waitFor({ state: "detached" });
const status = async (server, room, token) => (await fetch(`${server.public}/v1/rooms/${room}/status`, { headers: { Authorization: `Bearer ${token}` } })).json();
const figure = (page, label) => page.locator(".figure", { hasText: label }).locator("dd").innerText();

export function tell(promise) {
  promise("two hundred visitors go through the controls", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/sale", { title: "The sale", queue_all: true, rate: null, max_active: 120, claim: "on_admission" });
    const people = (await server.crowd("sale", 200)).sort((a, b) => a.place.order - b.place.order);
    await page.getByRole("link", { name: /The sale/ }).click();
    await page.getByRole("img", { name: /^Waiting: 200 now/ }).waitFor();

    await act(page, "Admit…");
    await page.getByLabel("How many").fill("50");
    await confirm(page, "Let them in now");
    await page.getByRole("status").getByText("50 people were let in.").waitFor();
    assert.equal((await roomOf(server, "sale")).active, 50);
    assert.equal((await status(server, "sale", people[49].token)).status, "active");
    assert.equal((await status(server, "sale", people[50].token)).position, 1);

    await act(page, "Pause…");
    await page.getByLabel("Reason for visitors").fill("The bank is slow.");
    await confirm(page, "Pause the room");
    await page.getByText("Paused", { exact: true }).waitFor();
    const held = await status(server, "sale", people[50].token);
    assert.deepEqual([held.room_status, held.reason, held.position], ["paused", "The bank is slow.", 1]);

    await act(page, "Pace…");
    await page.getByLabel("Pace", { exact: true }).fill("100/s");
    await confirm(page, "Set the pace to 100/s");
    await closed(page);
    assert.equal((await roomOf(server, "sale")).active, 50, "a paused room lets nobody in, whatever its pace");

    await act(page, "Resume…");
    await confirm(page, "Resume");
    await closed(page);
    await eventually(() => roomOf(server, "sale"), (room) => room.active === 120, "up to the capacity");
    await eventually(() => figure(page, "Let in"), (text) => text === "120", "the page follows");
    assert.equal((await roomOf(server, "sale")).waiting, 80);

    await act(page, "Capacity…");
    await page.getByLabel("Inside at most").fill("1,000");
    await confirm(page, "Set the capacity");
    await closed(page);
    await eventually(() => roomOf(server, "sale"), (room) => room.waiting === 0, "everybody is in");
    await page.getByRole("img", { name: /^Waiting: 0 now/ }).waitFor();
    const room = await roomOf(server, "sale");
    assert.deepEqual([room.active, room.max_active, room.admissions], [200, 1000, 200]);
  });

  promise("a message reaches visitors without stopping anything", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/told", { title: "Told", queue_all: true, rate: null });
    const { token } = await server.join("told");
    await goTo(page, "#/rooms/told");
    await act(page, "Message…");
    await page.getByLabel("Message", { exact: true }).fill("Row A is sold out.");
    await confirm(page, "Show it to everybody");
    await page.getByText("Message to visitors: “Row A is sold out.”").waitFor();
    const seen = await status(server, "told", token);
    assert.deepEqual([seen.message, seen.room_status], ["Row A is sold out.", "running"]);
    await act(page, "Message…");
    await page.getByLabel("Message", { exact: true }).fill("");
    await confirm(page, "Take the message away");
    await closed(page);
    await eventually(() => roomOf(server, "told"), (room) => !room.message, "it is gone");
  });

  promise("a drained room takes nobody new until it is resumed", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/drained", { title: "Drained", queue_all: true, rate: null });
    await server.join("drained");
    await goTo(page, "#/rooms/drained");
    await act(page, "Drain…");
    assert.ok(await page.getByRole("dialog").getByRole("button", { name: "Drain the room" }).isDisabled(), "without a reason");
    await page.getByLabel("Reason for visitors").fill("We close soon.");
    await confirm(page, "Drain the room");
    await page.getByText("Draining", { exact: true }).waitFor();
    await assert.rejects(server.join("drained"), /draining/);
    await act(page, "Resume…");
    await confirm(page, "Resume");
    await closed(page);
    await server.join("drained");
  });

  promise("finishing wants the room's name, and reopening is offered after", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/over", { title: "Over", queue_all: true, rate: null });
    const { token } = await server.join("over");
    await goTo(page, "#/rooms/over");
    await act(page, "Finish…");
    const finish = page.getByRole("dialog").getByRole("button", { name: "Finish the sale" });
    await page.getByLabel("Reason for visitors").fill("Sold out.");
    assert.ok(await finish.isDisabled());
    await page.getByLabel("Type over to confirm").fill("ovr");
    assert.ok(await finish.isDisabled());
    await page.getByLabel("Type over to confirm").fill("over");
    await finish.click();
    await page.getByText("Ended", { exact: true }).waitFor();
    assert.equal((await status(server, "over", token)).status, "closed");
    await act(page, "Reopen…");
    await confirm(page, "Reopen");
    await page.getByText("Running", { exact: true }).waitFor();
  });

  promise("what another operator does is seen and said", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/shared", { title: "Shared", queue_all: true });
    await goTo(page, "#/rooms/shared");
    await page.getByText("Running", { exact: true }).waitFor();
    await server.operate("POST", "/rooms/shared/pause", { reason: "Fire drill." });
    await page.getByRole("status").getByText("Shared: paused, “Fire drill.”.").waitFor();
    await page.getByText("Visitors read: “Fire drill.”").waitFor();
  });

  promise("a room is made here and opens in its settings", {}, async ({ page, server }) => {
    await page.getByRole("button", { name: "New room…" }).click();
    await page.getByLabel("Name").fill("Bad Name");
    await confirm(page, "Make the room");
    await page.locator(".field.wrong", { hasText: "Name" }).waitFor();
    await page.getByLabel("Name").fill("fresh");
    await page.getByLabel("Title").fill("Fresh");
    await page.getByLabel("Pace").fill("30/min");
    await confirm(page, "Make the room");
    await page.getByRole("heading", { name: "Fresh" }).waitFor();
    await page.locator(".tabs a[aria-current=page]", { hasText: "Settings" }).waitFor();
    assert.deepEqual([(await roomOf(server, "fresh")).rate, (await roomOf(server, "fresh")).max_active], ["30/min", 1000]);
  });
}
