// Numbers, spans and moments as operators read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** What stands where nothing is known. */
export const NONE = "–";

export function count(value: number | null | undefined): string {
  return value == null ? NONE : whole.format(value);
}

/** For axes and narrow places: 1.2K, 3M. */
export function compact(value: number | null | undefined): string {
  if (value == null) return NONE;
  return Math.abs(value) < 10_000 ? fine.format(value) : short.format(value);
}

export function pace(value: number | null | undefined): string {
  if (value == null) return NONE;
  return value < 10 ? fine.format(value) : compact(Math.round(value));
}

/** 45 s, 12 min, 1 h 05. */
export function span(seconds: number | null | undefined): string {
  if (seconds == null) return NONE;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s < 600 && s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.round(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}`;
  return `${fine.format(s / 86_400)} d`;
}

/** The same for an axis, where there is room for a few letters. */
export function spanTick(seconds: number | null | undefined): string {
  if (seconds == null) return NONE;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${fine.format(seconds / 60)} m`;
  return `${fine.format(seconds / 3600)} h`;
}

const moments = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

export function moment(iso: string | null | undefined): string {
  return iso ? moments.format(new Date(iso)) : NONE;
}

export function time(ms: number): string {
  return clock.format(new Date(ms));
}

export function ago(iso: string | null | undefined, now = Date.now()): string {
  if (!iso) return NONE;
  const seconds = (now - Date.parse(iso)) / 1000;
  if (seconds < 5 && seconds > -5) return "just now";
  const rough = (s: number) => s < 60 ? span(s) : s < 3600 ? `${Math.floor(s / 60)} min` : span(s);
  return seconds >= 0 ? `${rough(seconds)} ago` : `in ${rough(-seconds)}`;
}

const UNIT_S: Record<string, number> = { ms: 0.001, s: 1, sec: 1, m: 60, min: 60, h: 3600, d: 86_400 };

/** "500/min" is 8.33; null where nothing is paced. */
export function perSecond(rate: string | null | undefined): number | null {
  const read = /^(\d+)\/(\d*)([a-z]+)$/.exec(rate ?? "");
  const unit = read && UNIT_S[read[3]!];
  if (!read || !unit) return null;
  return Number(read[1]) / (Number(read[2] || 1) * unit);
}

/** "10/s" times 1.5 is "15/s": the same unit, at least one. */
export function scaled(rate: string, by: number): string {
  const read = /^(\d+)(\/.+)$/.exec(rate.trim());
  return read ? `${Math.max(1, Math.round(Number(read[1]) * by))}${read[2]}` : rate;
}

const WHY_UNKNOWN: Record<string, string> = {
  not_started: "not started yet",
  paused: "paused",
  closed: "ended",
  no_data: "nobody was let in lately",
  too_far: "too far away to say",
  too_wide: "too uncertain to say",
};

export function whyUnknown(code: string | null | undefined): string {
  return code ? WHY_UNKNOWN[code] ?? code.replaceAll("_", " ") : "";
}

/** A value of a document on one line. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (value === "") return "empty";
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value) && value.length === 0) return "none";
  return JSON.stringify(value).replaceAll('"', "").replaceAll(":", ": ").replaceAll(",", ", ");
}

export function words(code: string): string {
  return code.replaceAll("_", " ");
}
