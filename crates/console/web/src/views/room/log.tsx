// The newest events of a room, as they are in its log.
import { useEffect } from "preact/hooks";
import { ask, path } from "../../api";
import { count, plain, span, time, words } from "../../format";
import { Empty, Failed, Waiting } from "../../parts/bits";
import { useLoaded } from "../../parts/load";
import type { LogEvent, LogPage, Room } from "../../wire";

const SHOWN = 200;
const EVERY_MS = 2_000;

export function LogTab({ room }: { room: Room }) {
  const log = useLoaded<LogEvent[]>(() => tail(room.room), [room.room]);
  useEffect(() => {
    const timer = setInterval(() => void log.again(), EVERY_MS);
    return () => clearInterval(timer);
  }, [room.room]);
  if (!log.value) return log.problem ? <Failed what="The log" message={log.problem.message} again={() => void log.again()} /> : <Waiting what="the log" />;
  if (!log.value.length) return <Empty title="Nothing happened yet." />;
  return (
    <div class="card scrolls" tabIndex={0} role="region" aria-label="The newest events">
      <table class="dense">
        <caption>The newest {count(log.value.length)} events, the last first</caption>
        <thead><tr><th scope="col" class="n">Index</th><th scope="col">Time</th><th scope="col">Event</th><th scope="col" class="wide-cell">Facts</th></tr></thead>
        <tbody>
          {log.value.map((event) => (
            <tr key={event.index}>
              <td class="n">{event.index}</td>
              <td><time dateTime={event.at}>{time(Date.parse(event.at))}</time></td>
              <td>{words(event.event)}</td>
              <td class="facts">{facts(event)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The index counts tickets, so the last page begins somewhere near the head; the rest is cut. */
async function tail(room: string): Promise<LogEvent[]> {
  const page = (after: number) => ask<LogPage>("GET", path`/rooms/${room}/log?after=${String(after)}&limit=${String(SHOWN)}`);
  const first = await page(0);
  if (first.head <= SHOWN || first.next >= first.head) return first.events.reverse();
  return (await page(Math.max(0, first.head - SHOWN))).events.reverse();
}

const FRAME = new Set(["index", "at", "at_ms", "event", "settings"]);

function facts(event: LogEvent): string {
  return Object.entries(event)
    .filter(([name, value]) => !FRAME.has(name) && value !== null && value !== "")
    .map(([name, value]) => `${words(name.replace(/_ms$/, ""))} ${fact(name, value)}`)
    .join(" · ");
}

function fact(name: string, value: unknown): string {
  if (typeof value === "number" && name.endsWith("_ms") && !name.endsWith("_at_ms")) return span(value / 1000);
  const at = typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? Date.parse(value) : NaN;
  if (!Number.isNaN(at)) return time(at);
  return typeof value === "string" ? words(value) : plain(value);
}
