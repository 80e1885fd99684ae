// Small pictures: a status, a meter, a line of the last minutes, an empty place.
import type { ComponentChildren } from "preact";
import { count } from "../format";
import type { Point } from "../course";
import type { RoomStatus } from "../wire";

const MEANS: Record<RoomStatus, [word: string, tone: string]> = {
  running: ["Running", "good"],
  scheduled: ["Scheduled", "calm"],
  held: ["Doors open, not started", "calm"],
  drawing: ["Drawing", "calm"],
  paused: ["Paused", "warn"],
  maintenance: ["Maintenance", "warn"],
  draining: ["Draining", "warn"],
  ended: ["Ended", "over"],
};

export function statusWord(status: RoomStatus): string {
  return MEANS[status]?.[0] ?? status;
}

export function Status({ status }: { status: RoomStatus }) {
  const [word, tone] = MEANS[status] ?? [status, "calm"];
  return <span class={`pill ${tone}`}><span class="dot" aria-hidden="true" />{word}</span>;
}

/** How full something is. The number beside it says the same, so this is for eyes only. */
export function Meter({ value, most, warns = true }: { value: number; most: number | null; warns?: boolean }) {
  const share = most ? Math.min(1, value / most) : 0;
  return (
    <svg class={warns && share >= 0.95 ? "meter full" : "meter"} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="whole" width="100" height="4" rx="2" />
      {share > 0 && <rect class="part" width={Math.max(1.5, share * 100)} height="4" rx="2" />}
    </svg>
  );
}

/** The shape of a column, without numbers. */
export function Spark({ points }: { points: Point[] }) {
  const known = points.filter((point) => point !== null);
  const most = Math.max(1, ...known);
  const step = 100 / Math.max(1, points.length - 1);
  let pen = false;
  const line = points.map((point, at) => {
    if (point === null) {
      pen = false;
      return "";
    }
    const word = `${pen ? "L" : "M"}${(at * step).toFixed(1)} ${(23 - (point / most) * 21).toFixed(1)}`;
    pen = true;
    return word;
  }).join("");
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      {known.length > 1 && <path d={line} />}
    </svg>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <svg viewBox="0 0 64 40" aria-hidden="true">
        <rect x="1" y="1" width="62" height="38" rx="7" />
        <path d="M22 1v38" stroke-dasharray="3 4" />
      </svg>
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Waiting({ what }: { what: string }) {
  return <p class="loading" role="status">Loading {what}…</p>;
}

export function Failed({ what, message, again }: { what: string; message: string; again: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <p><strong>{what} could not be loaded.</strong> {message}</p>
      <button type="button" onClick={again}>Try again</button>
    </div>
  );
}

export function Figure({ label, value, unit }: { label: string; value: number | string | null; unit?: string }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>{typeof value === "number" || value === null ? count(value) : value}{unit && value !== null && <small> {unit}</small>}</dd>
    </div>
  );
}
