// How a room does, second by second.
import { useState } from "preact/hooks";
import { type Columns, type Point } from "../../course";
import { compact, count, pace, perSecond, span, spanTick, whyUnknown } from "../../format";
import { courseOf } from "../../live";
import { Figure, Meter } from "../../parts/bits";
import { Chart } from "../../parts/chart";
import type { OriginPicture, Room } from "../../wire";

const STRETCHES: ReadonlyArray<readonly [seconds: number, label: string]> = [[120, "2 min"], [300, "5 min"], [900, "15 min"]];

export function LiveTab({ room }: { room: Room }) {
  const [stretchS, setStretch] = useState(300);
  const columns = courseOf(room.room).columns;
  return (
    <>
      <dl class="figures card">
        <Figure label="Joined" value={room.joined} />
        <Figure label="Let in" value={room.admissions} />
        <Figure label="Completed" value={room.completed} />
        <Figure label="Left" value={room.left} />
        <Figure label="Expired" value={room.expired} />
        <Figure label="No-shows" value={room.no_shows} />
        <Figure label="Watching" value={room.connected} />
        <Figure label="Disk" value={room.store_latency_ms === null ? null : compact(room.store_latency_ms)} unit="ms" />
      </dl>
      <div class="heading small">
        <p class="sub" id="stretch-label">Seen by this tab, the last</p>
        <div class="segments" role="group" aria-labelledby="stretch-label">
          {STRETCHES.map(([seconds, label]) => (
            <button key={seconds} type="button" aria-pressed={stretchS === seconds} onClick={() => setStretch(seconds)}>{label}</button>
          ))}
        </div>
      </div>
      <Charts room={room} columns={columns} stretchS={stretchS} />
      <Lanes room={room} />
    </>
  );
}

const STEPS_S = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400];
const people = (point: Point | undefined) => compact(point);
const seconds = (point: Point | undefined) => span(point);
const millis = (point: Point | undefined) => point == null ? "–" : `${compact(Math.round(point))} ms`;

/** How the origins do, in words: the worst first. */
function health(origin: OriginPicture, minute: { bad: number } | null): string {
  const down = origin.origins - origin.living;
  const words = [
    down ? `${down} of ${origin.origins} down` : "up",
    minute?.bad ? `${pace(minute.bad * 100)} % failed in a minute` : "",
    `${compact(origin.in_flight)} in flight`,
  ];
  return words.filter(Boolean).join(", ");
}

function Charts({ room, columns, stretchS }: { room: Room; columns: Columns; stretchS: number }) {
  const limit = perSecond(room.rate);
  const wait = room.wait_of_last;
  const shared = { at: columns.at, stretchS };
  return (
    <div class="charts">
      <Chart {...shared} title="Waiting" value={people} least={10}
        lines={[{ label: "waiting", points: columns.waiting, colour: "accent", kind: "area" }]} />
      <Chart {...shared} title="Let in per second" value={pace} least={limit ?? 1}
        note={limit === null ? "by hand" : undefined}
        lines={[
          { label: "per second", points: columns.pace, colour: "blue", kind: "area" },
          { label: "limit", points: columns.limit, colour: "limit", kind: "limit" },
        ]} />
      <Chart {...shared} title="Slots taken" value={people} least={10}
        note={room.admitted ? `${compact(room.admitted)} on their way` : undefined}
        lines={[
          { label: "slots", points: columns.slots, colour: "violet", kind: "area" },
          { label: "of", points: columns.capacity, colour: "limit", kind: "limit" },
        ]} />
      <Chart {...shared} title="Wait of the last in line" value={seconds} tick={spanTick} steps={STEPS_S} least={60} band
        note={wait ? `${span(wait.low_s)} to ${span(wait.high_s)}` : room.waiting ? whyUnknown(room.wait_unknown_because) : "nobody waits"}
        lines={[
          { label: "low", points: columns.waitLow, colour: "accent", kind: "edge" },
          { label: "likely", points: columns.waitLikely, colour: "accent" },
          { label: "high", points: columns.waitHigh, colour: "accent", kind: "edge" },
        ]} />
      <Chart {...shared} title="No-shows in a minute" value={people} least={5}
        note={room.admissions ? `${pace((room.no_shows / room.admissions) * 100)} % of all let in` : undefined}
        lines={[{ label: "no-shows", points: columns.noShows, colour: "amber", kind: "area" }]} />
      {room.origin && (
        <Chart {...shared} title="Your site answers in" value={millis} least={100}
          note={health(room.origin, courseOf(room.room).origin(60))}
          lines={[{ label: "answers in", points: columns.originMs, colour: "blue", kind: "area" }]} />
      )}
    </div>
  );
}

function Lanes({ room }: { room: Room }) {
  if (room.lanes.length < 2) return null;
  const most = Math.max(1, ...room.lanes.map((lane) => lane.waiting));
  return (
    <div class="card scrolls">
      <table>
        <caption>Lanes</caption>
        <thead><tr><th scope="col">Lane</th><th scope="col" class="n">Weight</th><th scope="col" class="n">Waiting</th><th scope="col" class="wide-cell"><span class="unseen">Share</span></th><th scope="col" class="n">Let in</th><th scope="col" class="n">Joined</th></tr></thead>
        <tbody>
          {room.lanes.map((lane) => (
            <tr key={lane.lane}>
              <th scope="row">{lane.name}</th>
              <td class="n">{lane.weight ?? "–"}</td>
              <td class="n">{count(lane.waiting)}</td>
              <td><Meter value={lane.waiting} most={most} warns={false} /></td>
              <td class="n">{count(lane.admissions)}</td>
              <td class="n">{count(lane.joined)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
