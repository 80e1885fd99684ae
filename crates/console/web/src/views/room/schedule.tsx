// When a room opens, starts and ends, where it stands between these, and its draw.
import { count, moment, span } from "../../format";
import { Empty } from "../../parts/bits";
import { Editor } from "../../settings/editor";
import { SCHEDULE } from "../../settings/keys";
import { useNow } from "../../store";
import type { Room } from "../../wire";

const POINTS: ReadonlyArray<readonly [key: string, label: string]> = [["opens_at", "Doors open"], ["starts_at", "Sale starts"], ["ends_at", "Sale ends"]];

export function ScheduleTab({ room }: { room: Room }) {
  const now = useNow();
  const settings = room.settings;
  if (!settings) return <Empty title="This room has no settings yet." />;
  const points = POINTS.map(([key, label]) => ({ label, at: typeof settings[key] === "string" ? settings[key] : null }));
  const next = points.find((point) => point.at && Date.parse(point.at) > now);
  return (
    <>
      <ol class="timeline card">
        {points.map(({ label, at }) => {
          const past = at !== null && Date.parse(at) <= now;
          const isNext = next?.label === label;
          return (
            <li key={label} class={!at ? "open" : past ? "past" : isNext ? "next" : ""}>
              <b>{label}</b>
              <span>{at ? moment(at) : label === "Sale ends" ? "when it is finished" : "at once"}</span>
              <small>{at ? past ? `${span((now - Date.parse(at)) / 1000)} ago` : `in ${span((Date.parse(at) - now) / 1000)}` : "\u00a0"}</small>
            </li>
          );
        })}
      </ol>
      <p class="notice calm">{drawWord(room)}</p>
      <Editor room={room} groups={[SCHEDULE]} />
    </>
  );
}

function drawWord(room: Room): string {
  const draw = room.settings?.draw;
  if (!draw) return "No draw: whoever comes first is served first.";
  const beacon = typeof draw === "object" && draw !== null && (draw as { beacon?: string }).beacon;
  const how = beacon ? `with the public beacon ${beacon}: anyone can recompute it` : "with a seed that is committed to when the doors open and revealed after";
  switch (room.status) {
    case "scheduled": return `Those who come before the start will draw lots, ${how}.`;
    case "held": return `${count(room.waiting)} take part so far. They draw lots at the start, ${how}.`;
    case "drawing": return `Drawing now among ${count(room.waiting)}, ${how}.`;
    default: return `The order was drawn, ${how}. Later arrivals follow as they came.`;
  }
}
