// The frame around every view: who is signed in, where one can go, whether what is shown is fresh.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, askAs, asProblem } from "./api";
import { span } from "./format";
import { STALE_MS, follow, picture, trouble } from "./live";
import { Announcer } from "./parts/say";
import { Waiting } from "./parts/bits";
import { type Route, route, to } from "./route";
import { farewell, key, me, signIn, signOut } from "./session";
import { useNow, useStore } from "./store";
import { choice, choose, type Choice } from "./theme";
import { AuditView } from "./views/audit";
import { KeysView } from "./views/keys";
import { LostView } from "./views/lost";
import { RoomView } from "./views/room";
import { RoomsView } from "./views/rooms";
import { SignInView } from "./views/sign-in";
import type { Me } from "./wire";

export function App() {
  const who = useStore(me);
  const [trying, setTrying] = useState(key() !== null);
  useEffect(() => {
    const kept = key();
    if (!kept || me.value) {
      setTrying(false);
      return;
    }
    // A reload: the key is still in the tab, who it belongs to is asked again.
    askAs<Me>(kept, "/me")
      .then((who) => signIn(kept, who))
      .catch((error) => {
        const problem = asProblem(error);
        if (problem.status === 401) signOut(problem.message);
        else farewell.set(problem.message);
      })
      .finally(() => setTrying(false));
  }, []);
  if (trying) return <main class="alone"><Waiting what="the console" /></main>;
  return (
    <>
      {who ? <Signed who={who} /> : <SignInView />}
      <Announcer />
    </>
  );
}

function Signed({ who }: { who: Me }) {
  useEffect(follow, [who.id]);
  const at = useStore(route);
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    document.title = titleOf(at);
    scrollTo(0, 0);
    // A new view is a new page: a screen reader begins at its top. Not on the first one, where
    // the browser does that by itself.
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
  }, [at.view, at.view === "room" ? at.room + at.tab : ""]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      <header class="top">
        <a class="brand" href={to.rooms}><Mark /> waitroom</a>
        <nav aria-label="Console">
          <Go href={to.rooms} here={at.view === "rooms" || at.view === "room"}>Rooms</Go>
          <Go href={to.audit} here={at.view === "audit"}>Audit</Go>
          {who.role === "owner" && <Go href={to.keys} here={at.view === "keys"}>Keys</Go>}
        </nav>
        <div class="self">
          <Fresh />
          <ThemeChoice />
          <span class="who" title={who.note}><b>{who.id}</b> <span class="pill">{who.role}</span></span>
          <button type="button" class="quiet" onClick={() => signOut(null)}>Sign out</button>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {shown(at)}
      </main>
      <Stale />
    </div>
  );
}

function shown(at: Route): ComponentChildren {
  switch (at.view) {
    case "rooms": return <RoomsView />;
    case "room": return <RoomView key={at.room} name={at.room} tab={at.tab} />;
    case "audit": return <AuditView />;
    case "keys": return <KeysView />;
    case "lost": return <LostView />;
  }
}

function titleOf(at: Route): string {
  const view = at.view === "room" ? `${at.room} · ${at.tab}` : at.view;
  return `${view} · waitroom console`;
}

function Go({ href, here, children }: { href: string; here: boolean; children: ComponentChildren }) {
  return <a href={href} aria-current={here ? "page" : undefined}>{children}</a>;
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 20" aria-hidden="true">
      <rect width="32" height="20" rx="5" />
      <path d="M11 0v20" />
      <circle cx="21" cy="10" r="3.6" />
    </svg>
  );
}

function useAge(): number | null {
  const now = useNow(500);
  const last = useStore(picture);
  return last ? Math.max(0, now - last.at) : null;
}

/** A small word that all is well, in a place that is always taken. */
function Fresh() {
  const age = useAge();
  const fresh = age !== null && age < STALE_MS;
  return <span class={fresh ? "fresh" : "fresh not"}><span class="dot" aria-hidden="true" />{fresh ? "Live" : "Not live"}</span>;
}

/** Lies over the page instead of pushing it down. Announced once; the seconds are for eyes. */
function Stale() {
  const age = useAge();
  const problem = useStore(trouble);
  const stale = age !== null && age >= STALE_MS;
  return (
    <div class="stale" role="alert">
      {stale && (
        <p class="notice bad">
          <strong>{problem && problem.code !== "unreachable" ? "The server answers with an error." : "Connection lost."}</strong>{" "}
          <span class="unseen">What you see is old; we keep trying{reason(problem)}.</span>
          <span aria-hidden="true">The data is {span(age / 1000)} old; we keep trying{reason(problem)}.</span>
        </p>
      )}
    </div>
  );
}

function reason(problem: Problem | null): string {
  return problem && problem.code !== "unreachable" ? `: ${problem.message}` : "";
}

const CHOICES: ReadonlyArray<readonly [Choice, string]> = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]];

function ThemeChoice() {
  const chosen = useStore(choice);
  return (
    <select class="theme" aria-label="Colours" value={chosen}
      onChange={(event) => choose(event.currentTarget.value as Choice)}>
      {CHOICES.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
    </select>
  );
}
