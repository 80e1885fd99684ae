// The last fifteen minutes of a room, a sample a second, and what can be worked out from them.
import { perSecond } from "./format";
import type { Room } from "./wire";

export const KEEP_S = 15 * 60;
/** Admissions come in ticks of a fraction of a second; over ten seconds they are a pace, and one
 * tick more or less does not look like a broken limit. */
const PACE_WINDOW_S = 10;
const NO_SHOW_WINDOW_S = 60;

/** A point, or a gap where nothing is known. */
export type Point = number | null;

interface Sample {
  at: number;
  room: Room;
}

/** Columns over the same times, ready to be drawn. */
export interface Columns {
  at: number[];
  waiting: Point[];
  pace: Point[];
  limit: Point[];
  slots: Point[];
  capacity: Point[];
  waitLow: Point[];
  waitLikely: Point[];
  waitHigh: Point[];
  noShows: Point[];
  originMs: Point[];
}

export class Course {
  #samples: Sample[] = [];
  readonly columns: Columns = {
    at: [], waiting: [], pace: [], limit: [], slots: [], capacity: [],
    waitLow: [], waitLikely: [], waitHigh: [], noShows: [], originMs: [],
  };

  add(at: number, room: Room): void {
    const last = this.#samples.at(-1);
    if (last && at <= last.at) return;
    // A gap in time is a gap in the line, not a slope that nobody measured.
    if (last && at - last.at > 5) this.#push({ at: last.at + 1 }, null);
    this.#samples.push({ at, room });
    this.#push({ at }, room);
    while (this.columns.at[0] !== undefined && this.columns.at[0] < at - KEEP_S) {
      for (const column of Object.values(this.columns)) column.shift();
    }
    while (this.#samples[0] && this.#samples[0].at < at - KEEP_S) this.#samples.shift();
  }

  #push({ at }: { at: number }, room: Room | null): void {
    const wait = room?.wait_of_last ?? null;
    const into = this.columns;
    into.at.push(at);
    into.waiting.push(room?.waiting ?? null);
    into.pace.push(room ? this.rate("admissions", PACE_WINDOW_S) : null);
    into.limit.push(room ? perSecond(room.rate) : null);
    into.slots.push(room?.slots_taken ?? null);
    into.capacity.push(room?.max_active ?? null);
    into.waitLow.push(wait?.low_s ?? null);
    into.waitLikely.push(wait?.likely_s ?? null);
    into.waitHigh.push(wait?.high_s ?? null);
    into.noShows.push(room ? this.gained("no_shows", NO_SHOW_WINDOW_S) : null);
    into.originMs.push(room ? this.origin(PACE_WINDOW_S)?.ms ?? null : null);
  }

  /** How fast a total rises, per second, over the last few; null before there are two samples. */
  rate(total: "admissions" | "joined", windowS: number): Point {
    const [first, last] = this.#window(windowS);
    if (!first || !last || last.at <= first.at) return null;
    return Math.max(0, last.room[total] - first.room[total]) / (last.at - first.at);
  }

  gained(total: "no_shows", windowS: number): Point {
    const [first, last] = this.#window(windowS);
    return first && last ? Math.max(0, last.room[total] - first.room[total]) : null;
  }

  /** How long the origin took to answer, and the share that went badly; null while nobody asks. */
  origin(windowS: number): { ms: number; bad: number } | null {
    const [first, last] = this.#window(windowS);
    const [was, is] = [first?.room.origin, last?.room.origin];
    const asked = is && was ? is.asked - was.asked : 0;
    return is && was && asked > 0 ? { ms: (is.ms - was.ms) / asked, bad: (is.bad - was.bad) / asked } : null;
  }

  #window(windowS: number): [Sample | undefined, Sample | undefined] {
    const last = this.#samples.at(-1);
    if (!last) return [undefined, undefined];
    let at = this.#samples.length - 1;
    while (at > 0 && this.#samples[at - 1]!.at >= last.at - windowS) at -= 1;
    return [this.#samples[at], last];
  }
}
