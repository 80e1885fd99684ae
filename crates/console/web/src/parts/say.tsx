// What just happened, once, for eyes and for screen readers.
import { useEffect } from "preact/hooks";
import { Store, useStore } from "../store";

const SHOWN_MS = 6_000;

interface Said {
  id: number;
  text: string;
  tone: "good" | "bad";
}

const said = new Store<Said | null>(null);
let count = 0;

export function say(text: string, tone: Said["tone"] = "good"): void {
  said.set({ id: count += 1, text, tone });
}

export function Announcer() {
  const current = useStore(said);
  useEffect(() => {
    if (!current) return;
    const timer = setTimeout(() => said.set(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [current?.id]);
  // The region itself stays: a reader hears only what changes inside one that it already knows.
  return (
    <div class="announcer" role="status" aria-live="polite">
      {current && <p key={current.id} class={`toast ${current.tone}`}>{current.text}</p>}
    </div>
  );
}
