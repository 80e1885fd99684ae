// What an operator does while a sale runs. Each act says first what it will do to whom.
//
// To add an act: a word in `Act`, a button, and a dialog that sends it.
import { useState } from "preact/hooks";
import { ask, path } from "../../api";
import { count, perSecond, scaled } from "../../format";
import { refresh } from "../../live";
import { Ask } from "../../parts/dialog";
import { AreaField, TextField } from "../../parts/field";
import { say } from "../../parts/say";
import { may } from "../../session";
import type { Room } from "../../wire";
import { numeric, titleOf } from "../rooms";

type Act = "pause" | "resume" | "admit" | "rate" | "capacity" | "message" | "drain" | "maintenance" | "finish" | "reopen";

/** As many as the server takes at once. */
const ADMIT_MAX = 10_000;
const MESSAGE_MAX = 500;

export function Controls({ room }: { room: Room }) {
  const [open, setOpen] = useState<Act | null>(null);
  if (!may("operator")) {
    return <p class="controls hint">Your key may look at this room, not change it.</p>;
  }
  const held = room.status === "paused" || room.status === "maintenance" || room.status === "draining";
  const over = room.status === "ended";
  const button = (act: Act, label: string, tone = "", disabled = false) => (
    <button type="button" class={tone} disabled={disabled} onClick={() => setOpen(act)}>{label}</button>
  );
  return (
    <div class="controls" role="group" aria-label="Controls">
      {held ? button("resume", "Resume…", "main") : button("pause", "Pause…", "main", over)}
      {button("admit", "Admit…", "", over)}
      {button("rate", "Pace…")}
      {button("capacity", "Capacity…")}
      {button("message", "Message…")}
      <span class="spring" />
      {button("drain", "Drain…", "", over || room.status === "draining")}
      {button("maintenance", "Maintenance…", "", over || room.status === "maintenance")}
      {over ? button("reopen", "Reopen…") : button("finish", "Finish…", "grave-quiet")}
      {open && <ActDialog act={open} room={room} onClose={() => setOpen(null)} />}
    </div>
  );
}

interface ActProps {
  room: Room;
  onClose: () => void;
}

function ActDialog({ act, ...props }: ActProps & { act: Act }) {
  switch (act) {
    case "pause":
      return <Reasoned {...props} act={act} title="Pause" button="Pause the room" done="paused" required
        effect={`Nobody is let in until you resume. ${people(props.room.waiting)} keep their places and read your reason. ${people(props.room.slots_taken)} inside are not touched.`} />;
    case "drain":
      return <Reasoned {...props} act={act} title="Drain" button="Drain the room" done="draining" required
        effect={`Nobody new may join. ${people(props.room.waiting)} in line are still let in; resume ends it.`} />;
    case "maintenance":
      return <Reasoned {...props} act={act} title="Maintenance" button="Begin maintenance" done="in maintenance"
        effect={props.room.settings?.keep_inside === false
          ? `Everybody sees the maintenance page, also the ${count(props.room.slots_taken)} inside. Places are kept.`
          : "Everybody who waits sees the maintenance page; those inside stay inside. Places are kept."} />;
    case "resume": return <Resume {...props} />;
    case "finish": return <Finish {...props} />;
    case "reopen": return <Reopen {...props} />;
    case "admit": return <Admit {...props} />;
    case "rate": return <Pace {...props} />;
    case "capacity": return <Capacity {...props} />;
    case "message": return <Message {...props} />;
  }
}

function people(number: number): string {
  return number === 1 ? "One person" : `${count(number)} people`;
}

const post = (room: Room, act: string, body: unknown = {}) => ask<unknown>("POST", path`/rooms/${room.room}/` + act, body);
const patch = (room: Room, body: unknown) => ask<unknown>("PATCH", path`/rooms/${room.room}`, body);

async function seen(text: string): Promise<void> {
  await refresh();
  say(text);
}

interface ReasonedProps extends ActProps {
  act: "pause" | "drain" | "maintenance";
  title: string;
  button: string;
  done: string;
  effect: string;
  required?: boolean;
}

function Reasoned({ room, onClose, act, title, button, done, effect, required = false }: ReasonedProps) {
  const [reason, setReason] = useState("");
  return (
    <Ask title={`${title}: ${titleOf(room)}`} act={button} onClose={onClose} ready={!required || reason.trim() !== ""}
      onAct={async () => {
        await post(room, act, { reason: reason.trim() });
        await seen(`${titleOf(room)} is ${done}.`);
      }}>
      {(problem) => (
        <>
          <p>{effect}</p>
          <AreaField label="Reason for visitors" name="reason" required={required} value={reason} mistake={problem?.of("reason")}
            hint="A sentence that everybody who waits will read." onInput={(event) => setReason(event.currentTarget.value)} />
        </>
      )}
    </Ask>
  );
}

function Resume({ room, onClose }: ActProps) {
  return (
    <Ask title={`Resume: ${titleOf(room)}`} act="Resume" onClose={onClose} onAct={async () => {
      await post(room, "resume");
      await seen(`${titleOf(room)} goes on.`);
    }}>
      <p>{room.rate ? `People are let in again, up to ${room.rate}; nothing that was missed is made up for.` : "The room goes on; people are let in by hand."}</p>
    </Ask>
  );
}

function Finish({ room, onClose }: ActProps) {
  const [typed, setTyped] = useState("");
  return (
    <Ask title={`Finish: ${titleOf(room)}`} act="Finish the sale" tone="grave" onClose={onClose} ready={typed.trim() === room.room}
      onAct={async (form) => {
        await post(room, "finish", { reason: String(form.get("reason")).trim() });
        await seen(`${titleOf(room)} has ended.`);
      }}>
      {(problem) => (
        <>
          <p>The sale is over: nobody joins, nobody is let in, and {room.waiting === 1 ? "the place of one person ends" : `the places of ${count(room.waiting)} people end`}. Reopening gives nobody a place back.</p>
          <AreaField label="Reason for visitors" name="reason" mistake={problem?.of("reason")} placeholder="Sold out. Thank you for waiting." />
          <TextField label={`Type ${room.room} to confirm`} name="typed" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </>
      )}
    </Ask>
  );
}

function Reopen({ room, onClose }: ActProps) {
  return (
    <Ask title={`Reopen: ${titleOf(room)}`} act="Reopen" onClose={onClose} onAct={async () => {
      await post(room, "reopen");
      await seen(`${titleOf(room)} is open again.`);
    }}>
      <p>People can join again. Places that ended stay ended.</p>
    </Ask>
  );
}

function Admit({ room, onClose }: ActProps) {
  const free = room.slots_free ?? 0;
  const most = Math.min(room.waiting, free, ADMIT_MAX);
  const [typed, setTyped] = useState(String(Math.min(10, Math.max(1, most))));
  const given = numeric(typed.trim());
  return (
    <Ask title={`Admit: ${titleOf(room)}`} act="Let them in now" onClose={onClose} ready={typed.trim() !== ""}
      onAct={async () => {
        const { admitted } = await ask<{ admitted: number }>("POST", path`/rooms/${room.room}/admit`, { count: given });
        await seen(admitted === given ? `${people(admitted)} ${admitted === 1 ? "was" : "were"} let in.` : `${people(admitted)} of ${count(Number(given))} asked for were let in.`);
      }}>
      {(problem) => (
        <>
          <p>The next in line are let in at once, whatever the pace. {people(room.waiting)} {room.waiting === 1 ? "waits" : "wait"}; {free === 1 ? "one slot is" : `${count(free)} slots are`} free.</p>
          <TextField label="How many" name="count" inputMode="numeric" value={typed} mistake={problem?.of("count")}
            hint={typeof given === "number" && given > most ? `No more than ${count(most)} can be let in now.` : `At most ${count(ADMIT_MAX)} at once.`}
            onInput={(event) => setTyped(event.currentTarget.value)} />
        </>
      )}
    </Ask>
  );
}

const STEPS: ReadonlyArray<readonly [label: string, by: number]> = [["÷ 2", 0.5], ["− 10 %", 0.9], ["+ 10 %", 1.1], ["× 2", 2]];

function Pace({ room, onClose }: ActProps) {
  const [typed, setTyped] = useState(room.rate ?? "");
  const per = perSecond(typed.trim());
  const minutes = per ? room.waiting / per / 60 : null;
  return (
    <Ask title={`Pace: ${titleOf(room)}`} act={typed.trim() ? `Set the pace to ${typed.trim()}` : "Let in by hand only"} onClose={onClose}
      onAct={async () => {
        await patch(room, { rate: typed.trim() || null });
        await seen(`The pace of ${titleOf(room)} is ${typed.trim() || "by hand"}.`);
      }}>
      {(problem) => (
        <>
          <p>Now {room.rate ?? "by hand only"}. The change counts from this moment; nothing is made up for.</p>
          <TextField label="Pace" name="rate" value={typed} mistake={problem?.of("rate")}
            hint={minutes === null ? "10/s, 500/min, 3/h; empty: only operators let people in." : `At this pace ${people(room.waiting)} take ${minutes < 1 ? "less than a minute" : `about ${count(Math.round(minutes))} min`}, while there is room inside.`}
            onInput={(event) => setTyped(event.currentTarget.value)} />
          <div class="steps" role="group" aria-label="Change the pace">
            {STEPS.map(([label, by]) => <button key={label} type="button" disabled={per === null} onClick={() => setTyped(scaled(typed, by))}>{label}</button>)}
          </div>
        </>
      )}
    </Ask>
  );
}

function Capacity({ room, onClose }: ActProps) {
  const [typed, setTyped] = useState(String(room.max_active ?? ""));
  const given = numeric(typed.trim());
  const below = typeof given === "number" && given < room.slots_taken;
  return (
    <Ask title={`Capacity: ${titleOf(room)}`} act="Set the capacity" onClose={onClose} ready={typed.trim() !== ""}
      onAct={async (form) => {
        const waiting = String(form.get("max_waiting")).trim();
        await patch(room, { max_active: given, max_waiting: waiting === "" ? 0 : numeric(waiting) });
        await seen(`${titleOf(room)} now takes ${typeof given === "number" ? count(given) : given} inside.`);
      }}>
      {(problem) => (
        <>
          <p>{people(room.slots_taken)} {room.slots_taken === 1 ? "holds a slot" : "hold slots"} now.</p>
          <TextField label="Inside at most" name="max_active" inputMode="numeric" value={typed} mistake={problem?.of("max_active")}
            hint={below ? `Nobody is sent away: nobody new comes in until fewer than ${typed.trim()} are inside.` : "What the site can bear."}
            onInput={(event) => setTyped(event.currentTarget.value)} />
          <TextField label="Waiting at most" name="max_waiting" inputMode="numeric" value={String(room.settings?.max_waiting ?? 0)}
            mistake={problem?.of("max_waiting")} hint="0 means no limit." />
        </>
      )}
    </Ask>
  );
}

function Message({ room, onClose }: ActProps) {
  const [typed, setTyped] = useState(room.message ?? "");
  return (
    <Ask title={`Message: ${titleOf(room)}`} act={typed.trim() ? "Show it to everybody" : "Take the message away"} onClose={onClose}
      onAct={async () => {
        await patch(room, { message: typed.trim() });
        await seen(typed.trim() ? "Visitors read your message." : "The message was taken away.");
      }}>
      {(problem) => (
        <>
          <p>Everybody who waits reads it at once. It stops nothing.</p>
          <AreaField label="Message" name="message" rows={4} value={typed} mistake={problem?.of("message")} maxLength={MESSAGE_MAX}
            hint={`${typed.length} of ${MESSAGE_MAX} letters. Empty takes it away.`} onInput={(event) => setTyped(event.currentTarget.value)} />
        </>
      )}
    </Ask>
  );
}
