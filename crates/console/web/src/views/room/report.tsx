// What happened so far, in numbers, to look at and to take along.
import { ask, download, path } from "../../api";
import { compact, count, moment, span, words } from "../../format";
import { Failed, Figure, Waiting } from "../../parts/bits";
import { useLoaded } from "../../parts/load";
import { say } from "../../parts/say";
import type { Report, Room } from "../../wire";

const COLUMNS = ["joined", "admitted", "completed", "left", "expired", "no_shows", "waiting_max"];

export function ReportTab({ room }: { room: Room }) {
  const report = useLoaded<Report>(() => ask("GET", path`/rooms/${room.room}/report`), [room.room]);
  const take = async () => {
    try {
      const address = URL.createObjectURL(await download(path`/rooms/${room.room}/report?format=csv`));
      const link = document.createElement("a");
      link.href = address;
      link.download = `${room.room}.csv`;
      link.click();
      URL.revokeObjectURL(address);
    } catch (error) {
      say(`The report could not be fetched. ${(error as Error).message}`, "bad");
    }
  };
  if (!report.value) return report.problem ? <Failed what="The report" message={report.problem.message} again={() => void report.again()} /> : <Waiting what="the report" />;
  const { totals, wait_s, course, stretch_s, made_at, complete } = report.value;
  return (
    <>
      <div class="heading small">
        <p class="sub">As of {moment(made_at)}{complete ? "" : "; the log no longer reaches back to the beginning"}</p>
        <div class="tools">
          <button type="button" onClick={() => void report.again()}>Look again</button>
          <button type="button" class="main" onClick={() => void take()}>Download as CSV</button>
        </div>
      </div>
      <dl class="figures card">
        {Object.entries(totals).map(([name, value]) => <Figure key={name} label={words(name)} value={value} />)}
        {Object.entries(wait_s ?? {}).filter(([, value]) => typeof value === "number").map(([name, value]) => <Figure key={name} label={`wait, ${words(name)}`} value={name === "count" ? value : span(value)} />)}
      </dl>
      <div class="card scrolls" tabIndex={0} role="region" aria-label="The course">
        <table class="dense">
          <caption>The course, every {span(stretch_s)}, the last first</caption>
          <thead><tr><th scope="col">From</th>{COLUMNS.map((name) => <th key={name} scope="col" class="n">{words(name)}</th>)}</tr></thead>
          <tbody>
            {[...course].reverse().map((row) => (
              <tr key={String(row.from)}>
                <th scope="row"><time dateTime={String(row.from)}>{moment(String(row.from))}</time></th>
                {COLUMNS.map((name) => <td key={name} class="n">{typeof row[name] === "number" ? row[name] >= 100_000 ? compact(row[name]) : count(row[name]) : "–"}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
