// Light or dark: as the system says, unless somebody chose here.
import { Store } from "./store";

const PLACE = "waitroom-console-theme";
export type Choice = "auto" | "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");

export const choice = new Store<Choice>(read());
/** What is shown now; charts draw themselves again when it changes. */
export const theme = new Store<"light" | "dark">(shown());

function read(): Choice {
  const kept = localStorage.getItem(PLACE);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

function shown(): "light" | "dark" {
  if (choice.value !== "auto") return choice.value;
  return system.matches ? "dark" : "light";
}

function apply(): void {
  document.documentElement.dataset.theme = choice.value;
  theme.set(shown());
}

export function choose(next: Choice): void {
  localStorage.setItem(PLACE, next);
  choice.set(next);
  apply();
}

system.addEventListener("change", apply);
apply();
