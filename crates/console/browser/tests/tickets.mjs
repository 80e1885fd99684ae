// Somebody calls.
import assert from "node:assert/strict";
import { goTo } from "../site.mjs";
import { eventually } from "./eventually.mjs";

const look = async (page, text) => {
  await page.getByLabel("Find a ticket").fill(text);
  await page.getByRole("button", { name: "Find" }).click();
};

export function tell(promise) {
  promise("a ticket is found by support code, by id and by user", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/asked", { title: "Asked", queue_all: true, rate: null });
    await server.crowd("asked", 4);
    const one = await server.join("asked", { user_id: "anna@example.org" });
    await goTo(page, "#/rooms/asked/tickets");
    await page.getByText("Nobody is looked up.").waitFor();
    for (const text of [one.support_code, one.support_code.toLowerCase().replace("-", " "), one.ticket, "anna@example.org"]) {
      await look(page, text);
      const card = page.getByRole("article", { name: `Ticket ${one.support_code}` });
      await card.waitFor();
      // The name of the lane comes with the room, which is asked for apart.
      await eventually(() => card.innerText(), (text) => /waiting[\s\S]*Position\s+5[\s\S]*main/.test(text), "the whole card");
    }
    await look(page, "nobody@example.org");
    await page.getByText("No ticket with the user “nobody@example.org”.").waitFor();
    await eventually(() => page.getByRole("article").count(), (count) => count === 0, "no ticket is shown");
    await look(page, "8B0C-3DAA");
    await page.locator(".field.wrong", { hasText: "Find a ticket" }).waitFor();
  });

  promise("a ticket is moved to another lane and revoked", {}, async ({ page, server }) => {
    await server.operate("PUT", "/rooms/helped", { title: "Helped", queue_all: true, rate: null, lanes: ["main", "care"] });
    const one = await server.join("helped");
    await goTo(page, "#/rooms/helped/tickets");
    await look(page, one.support_code);
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByLabel("To lane").selectOption("care");
    await page.getByRole("button", { name: "Move the ticket" }).click();
    await page.getByRole("article").getByText("care").waitFor();
    const moved = await (await fetch(`${server.public}/v1/rooms/helped/status`, { headers: { Authorization: `Bearer ${one.token}` } })).json();
    assert.deepEqual([moved.status, moved.place.lane], ["waiting", 1]);
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("button", { name: "Revoke the ticket" }).click();
    await page.getByRole("article").getByText("revoked").first().waitFor();
    assert.equal((await server.operate("GET", `/rooms/helped/tickets/${one.ticket}`)).status, "revoked");
    await eventually(() => page.getByRole("button", { name: "Revoke…" }).count(), (count) => count === 0, "nothing is left to revoke");
  });
}
