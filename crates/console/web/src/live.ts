// All rooms, asked for every second, and what is remembered of them. One loop for all views.
import { Problem, ask, asProblem } from "./api";
import { Course } from "./course";
import { Store } from "./store";
import type { Room } from "./wire";

const EVERY_MS = 1_000;
/** Two answers in a row that did not come: then it is said aloud. */
export const STALE_MS = 3_500;

export interface Picture {
  rooms: Room[];
  /** When it was asked for, by our clock. */
  at: number;
}

export const picture = new Store<Picture | null>(null);
/** What the last request ran into; null after a good answer. */
export const trouble = new Store<Problem | null>(null);

const courses = new Map<string, Course>();

export function courseOf(room: string): Course {
  let course = courses.get(room);
  if (!course) courses.set(room, course = new Course());
  return course;
}

let running = 0;

/** Begins asking, until the returned function is called. */
export function follow(): () => void {
  running += 1;
  const mine = running;
  void loop(() => running === mine);
  return () => {
    running += 1;
    picture.set(null);
    trouble.set(null);
    courses.clear();
  };
}

async function loop(goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    const asked = Date.now();
    await refresh(goesOn);
    const left = EVERY_MS - (Date.now() - asked);
    await new Promise((done) => setTimeout(done, Math.max(left, 100)));
  }
}

/** Asks once more, out of turn: after an act, so that its effect is seen at once. */
export async function refresh(wanted: () => boolean = () => true): Promise<void> {
  const at = Date.now();
  try {
    const { rooms } = await ask<{ rooms: Room[] }>("GET", "/rooms");
    if (!wanted() || (picture.value && picture.value.at > at)) return;
    rooms.sort((a, b) => a.room.localeCompare(b.room));
    for (const room of rooms) courseOf(room.room).add((at + Date.now()) / 2000, room);
    picture.set({ rooms, at });
    trouble.set(null);
  } catch (error) {
    if (wanted()) trouble.set(asProblem(error));
  }
}
