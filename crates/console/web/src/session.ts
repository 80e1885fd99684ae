// Who is signed in. The key lives in the tab's sessionStorage: it survives a reload, and is gone
// when the tab is closed. It is sent to our own server only (the page's policy forbids others).
import { Store } from "./store";
import type { Me, Role } from "./wire";

const PLACE = "waitroom-console-key";

export const me = new Store<Me | null>(null);
/** Why somebody who was signed in is not any more. */
export const farewell = new Store<string | null>(null);

export function key(): string | null {
  return sessionStorage.getItem(PLACE);
}

export function signIn(secret: string, who: Me): void {
  sessionStorage.setItem(PLACE, secret);
  farewell.set(null);
  me.set(who);
}

export function signOut(because: string | null): void {
  sessionStorage.removeItem(PLACE);
  farewell.set(because);
  me.set(null);
}

const RANK: Record<Role, number> = { viewer: 0, operator: 1, owner: 2 };

export function may(role: Role): boolean {
  const mine = me.value?.role;
  return mine !== undefined && RANK[mine] >= RANK[role];
}
