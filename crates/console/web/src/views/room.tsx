// One room: how it stands, what can be done with it, and its tabs.
import { useEffect, useRef } from "preact/hooks";
import { picture, refresh, trouble } from "../live";
import { Empty, Failed, Status, Waiting, statusWord } from "../parts/bits";
import { say } from "../parts/say";
import { TABS, type Tab, to } from "../route";
import { useStore } from "../store";
import type { Room } from "../wire";
import { AuditList } from "./audit";
import { Controls } from "./room/controls";
import { LiveTab } from "./room/live";
import { LogTab } from "./room/log";
import { ReportTab } from "./room/report";
import { ScheduleTab } from "./room/schedule";
import { SettingsTab } from "./room/settings";
import { TicketsTab } from "./room/tickets";
import { titleOf } from "./rooms";

const TAB_WORDS: Record<Tab, string> = {
  live: "Live", tickets: "Tickets", schedule: "Schedule and draw", settings: "Settings",
  log: "Log", audit: "Audit", report: "Report",
};

export function RoomView({ name, tab }: { name: string; tab: Tab }) {
  const now = useStore(picture);
  const problem = useStore(trouble);
  const room = now?.rooms.find((room) => room.room === name);
  useStatusSaid(room);
  if (!now) {
    return problem
      ? <><h1>{name}</h1><Failed what="The room" message={problem.message} again={() => void refresh()} /></>
      : <><h1>{name}</h1><Waiting what="the room" /></>;
  }
  if (!room) {
    return (
      <>
        <h1>{name}</h1>
        <Empty title={`There is no room called “${name}”.`}><a class="button" href={to.rooms}>All rooms</a></Empty>
      </>
    );
  }
  const title = titleOf(room);
  return (
    <>
      <div class="heading room-heading">
        <div>
          <p class="crumbs"><a href={to.rooms}>Rooms</a> <span aria-hidden="true">/</span> <code>{room.room}</code></p>
          <h1>{title} <Status status={room.status} /></h1>
          <p class="sub">{room.reason ? `Visitors read: “${room.reason}”` : room.message ? `Message to visitors: “${room.message}”` : "\u00a0"}</p>
        </div>
      </div>
      <div role="alert">
        {room.store_trouble && <p class="notice bad trouble"><strong>Nothing can be written:</strong> {room.store_trouble}. Nobody joins and nobody is let in meanwhile; places are kept.</p>}
      </div>
      <Controls room={room} />
      <nav class="tabs" aria-label={`Views of ${title}`}>
        {TABS.map((one) => (
          <a key={one} href={to.room(name, one)} aria-current={one === tab ? "page" : undefined}>{TAB_WORDS[one]}</a>
        ))}
      </nav>
      <section aria-labelledby="tab-title" class="tab">
        <h2 id="tab-title" class="unseen">{TAB_WORDS[tab]}</h2>
        {tab === "live" && <LiveTab room={room} />}
        {tab === "tickets" && <TicketsTab room={room} />}
        {tab === "schedule" && <ScheduleTab room={room} />}
        {tab === "settings" && <SettingsTab room={room} />}
        {tab === "log" && <LogTab room={room} />}
        {tab === "audit" && <AuditList room={name} />}
        {tab === "report" && <ReportTab room={room} />}
      </section>
    </>
  );
}

/** A change of status is said aloud, whoever made it. */
function useStatusSaid(room: Room | undefined): void {
  const last = useRef<string | null>(null);
  useEffect(() => {
    if (!room) return;
    if (last.current && last.current !== room.status) {
      say(`${titleOf(room)}: ${statusWord(room.status).toLowerCase()}${room.reason ? `, “${room.reason}”` : ""}.`);
    }
    last.current = room.status;
  }, [room?.status]);
}
