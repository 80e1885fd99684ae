// Where we are: the part of the address behind `#`. A reload or a shared link leads to the same
// view, and the server needs to know one page only.
import { Store } from "./store";

export const TABS = ["live", "tickets", "schedule", "settings", "log", "audit", "report"] as const;
export type Tab = typeof TABS[number];

export type Route =
  | { view: "rooms" }
  | { view: "room"; room: string; tab: Tab }
  | { view: "audit" }
  | { view: "keys" }
  | { view: "lost" };

export function read(hash: string): Route {
  const parts = hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
  const [first, room, tab = "live"] = parts;
  if (!first || (first === "rooms" && !room)) return { view: "rooms" };
  if (first === "rooms" && room && (TABS as readonly string[]).includes(tab)) {
    return { view: "room", room, tab: tab as Tab };
  }
  if ((first === "audit" || first === "keys") && parts.length === 1) return { view: first };
  return { view: "lost" };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const to = {
  rooms: "#/rooms",
  audit: "#/audit",
  keys: "#/keys",
  room: (room: string, tab: Tab = "live") =>
    `#/rooms/${encodeURIComponent(room)}${tab === "live" ? "" : `/${tab}`}`,
};

export const route = new Store<Route>(read(location.hash));
addEventListener("hashchange", () => route.set(read(location.hash)));
