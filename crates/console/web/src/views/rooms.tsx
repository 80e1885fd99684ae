// All rooms at a glance.
import { useState } from "preact/hooks";
import { ask, path } from "../api";
import { compact, count, span, whyUnknown } from "../format";
import { courseOf, picture, refresh, trouble } from "../live";
import { Empty, Failed, Meter, Spark, Status, Waiting } from "../parts/bits";
import { Ask } from "../parts/dialog";
import { TextField } from "../parts/field";
import { say } from "../parts/say";
import { to } from "../route";
import { may } from "../session";
import { useStore } from "../store";
import type { Room } from "../wire";

/** With more rooms than fit on a screen one looks for them by name. */
const FILTER_FROM = 7;

export function RoomsView() {
  const now = useStore(picture);
  const problem = useStore(trouble);
  const [wanted, setWanted] = useState("");
  const [making, setMaking] = useState(false);
  const rooms = now?.rooms ?? [];
  const fits = rooms.filter((room) => `${room.room} ${titleOf(room)}`.toLowerCase().includes(wanted.toLowerCase()));
  const sum = (of: (room: Room) => number) => rooms.reduce((all, room) => all + of(room), 0);
  return (
    <>
      <div class="heading">
        <div>
          <h1>Rooms</h1>
          <p class="sub">{now
            ? `${count(sum((room) => room.waiting))} waiting, ${count(sum((room) => room.slots_taken))} inside`
            : "\u00a0"}</p>
        </div>
        <div class="tools">
          {rooms.length >= FILTER_FROM && (
            <input type="search" aria-label="Find a room" placeholder="Find a room" value={wanted}
              onInput={(event) => setWanted(event.currentTarget.value)} />
          )}
          {may("owner") && <button type="button" class="main" onClick={() => setMaking(true)}>New room…</button>}
        </div>
      </div>
      {!now && (problem ? <Failed what="The rooms" message={problem.message} again={() => void refresh()} /> : <Waiting what="rooms" />)}
      {now && rooms.length === 0 && (
        <Empty title="There is no room yet.">
          <p>A room protects one site or one sale. {may("owner") ? "Make the first one here" : "An owner makes one here"}, with <code>waitroom room put</code>, or in the configuration.</p>
        </Empty>
      )}
      {now && rooms.length > 0 && fits.length === 0 && <Empty title={`No room is called “${wanted}”.`} />}
      <ul class="rooms">
        {fits.map((room) => <li key={room.room}><RoomCard room={room} /></li>)}
      </ul>
      {making && <NewRoom onClose={() => setMaking(false)} />}
    </>
  );
}

export function titleOf(room: Room): string {
  const title = room.settings?.title;
  return typeof title === "string" && title ? title : room.room;
}

function RoomCard({ room }: { room: Room }) {
  const title = titleOf(room);
  const wait = room.wait_of_last;
  return (
    <a class="card room-card" href={to.room(room.room)}>
      <span class="line">
        <span class="names"><b>{title}</b>{title !== room.room && <small>{room.room}</small>}</span>
        <Status status={room.status} />
      </span>
      <span class="line big">
        <span><b class="number">{compact(room.waiting)}</b> <small>waiting</small></span>
        <Spark points={courseOf(room.room).columns.waiting} />
      </span>
      <span class="inside">
        <small>{count(room.slots_taken)} of {count(room.max_active)} inside</small>
        <Meter value={room.slots_taken} most={room.max_active} />
      </span>
      <span class="line foot">
        <small>{room.rate ? `up to ${room.rate}` : "let in by hand"}</small>
        <small>{wait ? `last waits about ${span(wait.likely_s)}` : room.waiting ? `wait: ${whyUnknown(room.wait_unknown_because)}` : "nobody waits"}</small>
      </span>
      {room.store_trouble && <span class="why bad">Nothing can be written: {room.store_trouble}</span>}
      {room.reason && <span class={room.status === "ended" ? "why over" : "why"}>{room.reason}</span>}
    </a>
  );
}

function NewRoom({ onClose }: { onClose: () => void }) {
  const make = async (form: FormData) => {
    const name = String(form.get("name")).trim();
    const text = (field: string) => String(form.get(field)).trim();
    const document: Record<string, unknown> = { title: text("title"), target_url: text("target_url") || "/" };
    if (text("max_active")) document.max_active = numeric(text("max_active"));
    document.rate = text("rate") || null;
    await ask("PUT", path`/rooms/${name}`, document);
    await refresh();
    say(`Room ${name} was made.`);
    location.hash = to.room(name, "settings");
  };
  return (
    <Ask title="New room" act="Make the room" onClose={onClose} onAct={make}>
      {(problem) => (
        <>
          <TextField label="Name" name="name" required mistake={problem?.of("room") ?? problem?.of("name")} hint="In addresses: a-z, 0-9, _ and -. It stays." />
          <TextField label="Title" name="title" mistake={problem?.of("title")} hint="What visitors read." spellcheck />
          <TextField label="Target" name="target_url" mistake={problem?.of("target_url")} placeholder="/" hint="Where an admitted visitor goes." />
          <div class="pair">
            <TextField label="Inside at most" name="max_active" inputMode="numeric" value="1000" mistake={problem?.of("max_active")} />
            <TextField label="Pace" name="rate" value="10/s" mistake={problem?.of("rate")} hint="10/s, 500/min; empty: by hand" />
          </div>
        </>
      )}
    </Ask>
  );
}

/** A number where it is one; else the text, which the server then complains about by its name. */
export function numeric(text: string): number | string {
  return /^\d+$/.test(text.replaceAll(/[ ,_]/g, "")) ? Number(text.replaceAll(/[ ,_]/g, "")) : text;
}
