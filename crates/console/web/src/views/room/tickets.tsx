// Somebody calls: their ticket is found by what they have, and helped.
import { useState } from "preact/hooks";
import { type Problem, ask, asProblem, path } from "../../api";
import { ago, count, moment, span, whyUnknown, words } from "../../format";
import { refresh } from "../../live";
import { Empty } from "../../parts/bits";
import { Ask } from "../../parts/dialog";
import { SelectField, TextField } from "../../parts/field";
import { say } from "../../parts/say";
import { may } from "../../session";
import type { Room, Ticket } from "../../wire";

type By = "id" | "support_code" | "user_id";

const BY_WORDS: Record<By, string> = { id: "ticket id", support_code: "support code", user_id: "user" };

/** What a text looks like. A support code is eight letters and digits, typed in any manner. */
export function guessed(text: string): By {
  const bare = text.trim();
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(bare)) return "id";
  return /^[0-9a-z]{8}$/i.test(bare.replaceAll(/[\s-]/g, "")) ? "support_code" : "user_id";
}

async function find(room: string, by: By, text: string): Promise<Ticket[]> {
  if (by === "id") {
    try {
      return [await ask<Ticket>("GET", path`/rooms/${room}/tickets/${text.toLowerCase()}`)];
    } catch (error) {
      if (asProblem(error).status === 404) return [];
      throw error;
    }
  }
  const { tickets } = await ask<{ tickets: Ticket[] }>("GET", path`/rooms/${room}/tickets?` + new URLSearchParams({ [by]: text }));
  return tickets;
}

export function TicketsTab({ room }: { room: Room }) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState<By | "auto">("auto");
  const [found, setFound] = useState<{ text: string; by: By; tickets: Ticket[] } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const by = chosen === "auto" ? guessed(typed) : chosen;
  const look = async (event?: Event) => {
    event?.preventDefault();
    const text = typed.trim();
    if (!text || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      setFound({ text, by, tickets: await find(room.room, by, text) });
    } catch (error) {
      setFound(null);
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  // By the old id: a ticket that moved to another lane has a new one.
  const replaced = (id: string, ticket: Ticket) => setFound((now) => now && {
    ...now, tickets: now.tickets.map((old) => old.ticket === id ? ticket : old),
  });
  return (
    <>
      <form class="card search" role="search" onSubmit={look} noValidate>
        <TextField label="Find a ticket" type="search" value={typed} mistake={problem?.of(by)}
          hint={typed.trim() ? `Looked up as ${BY_WORDS[by]}.` : "A support code such as 8B0C-3DAP, a ticket id, or the shop’s name for a user."}
          onInput={(event) => setTyped(event.currentTarget.value)} />
        <SelectField label="By" value={chosen} onChange={(event) => setChosen(event.currentTarget.value as By | "auto")}
          choices={[["auto", "What it looks like"], ["support_code", "Support code"], ["id", "Ticket id"], ["user_id", "User"]]} />
        <button type="submit" class="main" disabled={busy || !typed.trim()}>{busy ? "Looking…" : "Find"}</button>
      </form>
      <div role="alert">{problem && !problem.of(by) && <p class="notice bad">{problem.message}</p>}</div>
      <div role="status">
        {found && <p class="unseen">{found.tickets.length === 1 ? "One ticket found." : `${found.tickets.length} tickets found.`}</p>}
        {found && found.tickets.length === 0 && (
          <Empty title={`No ticket with the ${BY_WORDS[found.by]} “${found.text}”.`}>
            <p>Finished tickets are forgotten after {String(room.settings?.memory ?? "a while")}. Look in the other rooms too: a ticket belongs to one.</p>
          </Empty>
        )}
      </div>
      {found?.tickets.map((ticket) => <TicketCard key={ticket.ticket} room={room} ticket={ticket} onChange={(changed) => replaced(ticket.ticket, changed)} />)}
      {!found && !problem && <Empty title="Nobody is looked up."><p>Visitors find their support code at the bottom of the waiting page.</p></Empty>}
    </>
  );
}

const LIVE = ["waiting", "admitted", "active"];

function TicketCard({ room, ticket, onChange }: { room: Room; ticket: Ticket; onChange: (ticket: Ticket) => void }) {
  const [open, setOpen] = useState<"move" | "revoke" | null>(null);
  const lane = room.lanes.find((lane) => lane.lane === ticket.place?.lane)?.name;
  const live = LIVE.includes(ticket.status);
  const rows: Array<[string, string | undefined]> = [
    ["Position", ticket.position === null ? undefined : ticket.position === 0 ? "let in" : count(ticket.position)],
    ["Lane", lane],
    ["Wait", ticket.status !== "waiting" ? undefined : ticket.wait ? `about ${span(ticket.wait.likely_s)} (${span(ticket.wait.low_s)} to ${span(ticket.wait.high_s)})` : whyUnknown(ticket.wait_unknown_because)],
    ["Joined", ticket.joined_at && `${moment(ticket.joined_at)}, ${ago(ticket.joined_at)}`],
    ["Let in", ticket.admitted_at && `${moment(ticket.admitted_at)}, ${ago(ticket.admitted_at)}`],
    ["Must come by", ticket.claim_by && moment(ticket.claim_by)],
    ["Ended because", ticket.ended_because && words(ticket.ended_because)],
  ];
  return (
    <article class="card ticket" aria-label={`Ticket ${ticket.support_code}`}>
      <div class="line">
        <h3><code class="code">{ticket.support_code}</code> <span class={`pill ${live ? "good" : "over"}`}>{ticket.status}</span></h3>
        {may("operator") && live && (
          <div class="tools">
            {room.lanes.length > 1 && ticket.status === "waiting" && <button type="button" onClick={() => setOpen("move")}>Move…</button>}
            <button type="button" class="grave-quiet" onClick={() => setOpen("revoke")}>Revoke…</button>
          </div>
        )}
      </div>
      <dl class="rows">
        {rows.map(([label, value]) => value && <div key={label}><dt>{label}</dt><dd>{value}</dd></div>)}
        <div><dt>Id</dt><dd><code>{ticket.ticket}</code></dd></div>
      </dl>
      {open === "revoke" && (
        <Ask title={`Revoke ${ticket.support_code}`} act="Revoke the ticket" tone="grave" onClose={() => setOpen(null)}
          onAct={async () => {
            onChange(await ask<Ticket>("POST", path`/rooms/${room.room}/tickets/${ticket.ticket}/revoke`, {}));
            await refresh();
            say(`${ticket.support_code} was revoked.`);
          }}>
          <p>{ticket.status === "waiting" ? "This person loses the place in line." : "This person is sent out; the pass is no longer good."} It cannot be taken back.</p>
        </Ask>
      )}
      {open === "move" && (
        <Ask title={`Move ${ticket.support_code}`} act="Move the ticket" onClose={() => setOpen(null)}
          onAct={async (form) => {
            const to = String(form.get("lane"));
            onChange(await ask<Ticket>("POST", path`/rooms/${room.room}/tickets/${ticket.ticket}/move`, { lane: to }));
            await refresh();
            say(`${ticket.support_code} was moved to ${to}.`);
          }}>
          {(problem) => (
            <>
              <p>The ticket goes to the end of the other lane. The person keeps the link and the token.</p>
              <SelectField label="To lane" name="lane" mistake={problem?.of("lane")}
                choices={room.lanes.filter((other) => other.name !== lane).map((other) => [other.name, `${other.name} (${count(other.waiting)} waiting)`] as const)} />
            </>
          )}
        </Ask>
      )}
    </article>
  );
}
