// A live line over the last fifteen minutes. uPlot draws; this keeps it in step with the page:
// its width, the colours of the theme, and one cursor over all charts of a room.
//
// The drawing is for eyes. What it says stands beside it as text: the value now (or under the
// cursor), and for screen readers the range of the whole stretch.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { KEEP_S, type Point } from "../course";
import { time } from "../format";
import { useStore } from "../store";
import { theme } from "../theme";

export interface Line {
  label: string;
  points: Point[];
  /** A colour of the theme, without the dashes: `accent`. */
  colour: string;
  kind?: "area" | "line" | "limit" | "edge";
}

interface ChartProps {
  title: string;
  at: number[];
  lines: Line[];
  /** Between the first and the last line, such as low and high of an estimate. */
  band?: boolean;
  value: (point: Point | undefined) => string;
  /** The same for the axis, where that must be shorter. */
  tick?: (point: Point | undefined) => string;
  /** The axis never ends below this, so that one person is not a mountain. */
  least?: number;
  /** Between two marks of the axis; for seconds, where ten is no round number. */
  steps?: number[];
  /** What stands beside the number now. */
  note?: string;
  stretchS: number;
}

const HEIGHT = 168;
const SYNC = "room";
const MARKS_MAX = 5;
const STEPS_S = [30, 60, 180, 300];

export function Chart({ title, at, lines, band = false, value, tick = value, least = 1, steps, note, stretchS }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [under, setUnder] = useState<number | null>(null);
  const scheme = useStore(theme);
  const format = useRef(tick);
  format.current = tick;

  useEffect(() => {
    const place = frame.current;
    if (!place) return;
    const drawn = new uPlot(options(lines, band, least, steps, format, setUnder, place), [[], ...lines.map(() => [])] as uPlot.AlignedData, place);
    plot.current = drawn;
    const sized = new ResizeObserver(() => drawn.setSize({ width: place.clientWidth, height: HEIGHT }));
    sized.observe(place);
    return () => {
      sized.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [scheme, lines.length]);

  useEffect(() => {
    const drawn = plot.current;
    if (!drawn) return;
    const end = at.at(-1) ?? Math.round(Date.now() / 1000);
    drawn.batch(() => {
      drawn.setData([at, ...lines.map((line) => line.points)] as uPlot.AlignedData, false);
      drawn.setScale("x", { min: end - Math.min(stretchS, KEEP_S), max: end });
    });
  }, [at.at(-1), at.length, scheme, stretchS, lines.length]);

  const main = lines.find((line) => line.kind !== "edge" && line.kind !== "limit") ?? lines[0]!;
  const shown = under !== null && at[under] !== undefined ? under : at.length - 1;
  const known = main.points.filter((point) => point !== null);
  const range = known.length
    ? `From ${value(known.reduce((a, b) => Math.min(a, b)))} to ${value(known.reduce((a, b) => Math.max(a, b)))} in the time shown.`
    : "Nothing is known yet.";
  return (
    <figure class="chart card">
      <figcaption>
        <h3>{title}</h3>
        <p class="now">
          <b>{value(main.points[shown])}</b>
          {lines.filter((line) => line !== main && line.kind === "limit" && line.points[shown] != null).map((line) => (
            <span key={line.label} class="beside">{line.label} {value(line.points[shown])}</span>
          ))}
          {note && <span class="beside">{note}</span>}
          <span class="when">{under !== null && at[shown] !== undefined ? time(at[shown] * 1000) : ""}</span>
        </p>
      </figcaption>
      <div class="plot" ref={frame} role="img" aria-label={`${title}: ${value(main.points.at(-1))} now. ${range}`} />
    </figure>
  );
}

function options(
  lines: Line[], band: boolean, least: number, steps: number[] | undefined, format: { current: ChartProps["value"] },
  under: (index: number | null) => void, place: HTMLElement,
): uPlot.Options {
  const colour = (name: string) => resolved(place, name);
  const ink = colour("soft");
  const grid = { stroke: colour("line"), width: 1 };
  const axis = { stroke: ink, grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width: place.clientWidth || 320,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 20, 0, 0],
    cursor: {
      y: false,
      points: { size: 7 },
      drag: { x: false, y: false },
      sync: { key: SYNC, setSeries: false },
    },
    scales: {
      x: { time: true, auto: false },
      y: { range: (_, __, most) => [0, Math.max(least, (most ?? 0) * 1.08)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26, splits: (drawn) => moments(drawn.scales.x!), values: (drawn, ticks) => ticks.map((tick) => before(tick, drawn.scales.x!)) },
      { ...axis, size: 54, space: 34, ...(steps ? { incrs: steps } : {}), values: (_, ticks) => ticks.map((tick) => format.current(tick)) },
    ],
    series: [{}, ...lines.map((line) => style(line, colour))],
    bands: band ? [{ series: [lines.length, 1], fill: `${colour("accent-wash")}` }] : undefined,
    hooks: { setCursor: [(drawn) => under(drawn.cursor.idx ?? null)] },
  };
}

/** Marks that stay where they are while the line moves through: whole steps back from now. The
 * one at the very left would lie on the other axis. */
function moments({ min, max }: uPlot.Scale): number[] {
  const [start, end] = [min ?? 0, max ?? 0];
  const step = STEPS_S.find((step) => (end - start) / step <= MARKS_MAX) ?? STEPS_S.at(-1)!;
  const marks = [];
  for (let at = end; at > start + step / 4; at -= step) marks.unshift(at);
  return marks;
}

function before(tick: number, { max }: uPlot.Scale): string {
  const seconds = Math.round((max ?? 0) - tick);
  if (seconds === 0) return "now";
  return seconds % 60 ? `−${seconds} s` : `−${seconds / 60} min`;
}

function style(line: Line, colour: (name: string) => string): uPlot.Series {
  const stroke = colour(line.colour);
  switch (line.kind ?? "line") {
    case "area":
      return { stroke, width: 1.75, fill: colour(`${line.colour}-wash`), points: { show: false } };
    case "limit":
      return { stroke, width: 1.5, dash: [5, 4], points: { show: false } };
    case "edge":
      return { stroke: "transparent", width: 0, points: { show: false } };
    default:
      return { stroke, width: 1.75, points: { show: false } };
  }
}

/** A colour as the canvas knows it: a custom property may hold `light-dark(…)`. */
function resolved(place: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  place.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
