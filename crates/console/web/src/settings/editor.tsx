// A form over some settings of a room. Only what was changed here is sent, so of two people who
// change different things neither takes back what the other did.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Problem, ask, path } from "../api";
import { plain } from "../format";
import { refresh } from "../live";
import { Ask } from "../parts/dialog";
import { say } from "../parts/say";
import { may } from "../session";
import type { Room, Settings } from "../wire";
import { SettingInput } from "./inputs";
import { type Group, OPERATORS_KEYS } from "./keys";

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

interface Change {
  /** What stood there when it was first touched. */
  from: unknown;
  to: unknown;
}

export function Editor({ room, groups }: { room: Room; groups: Group[] }) {
  const [changes, setChanges] = useState<Record<string, Change>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const [reviewing, setReviewing] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const settings: Settings = room.settings ?? {};
  const changed = Object.entries(changes).filter(([name, change]) => !same(change.to, settings[name]));

  useEffect(() => {
    const wrong = problem && form.current?.querySelector<HTMLElement>("[aria-invalid=true], .wrong input");
    wrong?.focus();
  }, [problem]);
  useEffect(() => {
    if (!changed.length) return;
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [changed.length > 0]);

  const change = (name: string, to: unknown) => setChanges((now) => ({ ...now, [name]: { from: now[name] ? now[name].from : settings[name], to } }));
  const forget = () => {
    setChanges({});
    setProblem(null);
  };
  const send = async () => {
    try {
      await ask("PATCH", path`/rooms/${room.room}`, Object.fromEntries(changed.map(([name, { to }]) => [name, to])));
    } catch (error) {
      const wrong = error as Problem;
      if (!wrong.fields?.length) throw error;
      // Shown where it was typed; the review has nothing to add.
      setProblem(wrong);
      return;
    }
    await refresh();
    forget();
    say(changed.length === 1 ? "One setting was changed." : `${changed.length} settings were changed.`);
  };
  return (
    <form class="editor" ref={form} noValidate onSubmit={(event) => { event.preventDefault(); if (changed.length) setReviewing(true); }}>
      {!may("owner") && <p class="notice warn">{may("operator") ? "Your key may change pace, burst, capacity and message; the rest takes an owner’s." : "Your key may look, not change."}</p>}
      <div role="alert">{problem && <p class="notice bad">Nothing was changed: {problem.fields.length === 1 ? "one setting is" : `${problem.fields.length} settings are`} not right.</p>}</div>
      {groups.map((group) => (
        <fieldset class="card group" key={group.title}>
          <legend>{group.title}</legend>
          <div class="grid">
            {group.keys.filter((key) => key.name in settings).map((key) => {
              const mine = changes[key.name];
              const overtaken = mine && !same(mine.from, settings[key.name]) && !same(mine.to, settings[key.name]);
              return (
                <SettingInput key={key.name} setting={key} value={mine ? mine.to : settings[key.name]}
                  mistake={problem?.of(key.name)}
                  disabled={!may("owner") && !(may("operator") && OPERATORS_KEYS.includes(key.name))}
                  aside={overtaken ? `Meanwhile somebody set it to ${plain(settings[key.name])}.` : undefined}
                  onChange={(to) => change(key.name, to)} />
              );
            })}
          </div>
        </fieldset>
      ))}
      <div class={changed.length ? "save shown" : "save"} aria-live="polite">
        <span>{changed.length === 0 ? "Nothing changed" : changed.length === 1 ? "One change" : `${changed.length} changes`}</span>
        <button type="button" class="quiet" disabled={!changed.length} onClick={forget}>Discard</button>
        <button type="submit" class="main" disabled={!changed.length}>Review and save…</button>
      </div>
      {reviewing && (
        <Ask title="Save these settings?" act="Save" onClose={() => setReviewing(false)} onAct={send}>
          <Differences changed={changed.map(([name, { to }]) => ({ name, before: settings[name], after: to }))} />
        </Ask>
      )}
    </form>
  );
}

export function Differences({ changed }: { changed: Array<{ name: string; before: unknown; after: unknown }> }) {
  return (
    <dl class="differences">
      {changed.map(({ name, before, after }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd><del><span class="unseen">from </span>{plain(before)}</del> <span aria-hidden="true">→</span> <ins><span class="unseen">to </span>{plain(after)}</ins></dd>
        </div>
      ))}
    </dl>
  );
}
