// An input for each kind of setting. Values go in and out as the document writes them; what
// cannot be read is passed on as it was typed, so that the server can say what is wrong with it.
import { AreaField, Field, SelectField, TextField } from "../parts/field";
import { moment } from "../format";
import type { Key } from "./keys";

interface InputProps {
  setting: Key;
  value: unknown;
  mistake: string | undefined;
  disabled: boolean;
  /** A word about the value, such as that somebody else changed it meanwhile. */
  aside?: string;
  onChange: (value: unknown) => void;
}

const text = (value: unknown) => value === null || value === undefined ? "" : String(value);
const typed = (event: { currentTarget: { value: string } }) => event.currentTarget.value;
const number = (given: string) => /^\d+$/.test(given.trim()) ? Number(given.trim()) : given.trim();

export function SettingInput(props: InputProps) {
  const { setting, value, mistake, disabled, aside, onChange } = props;
  const hint = aside ? <>{setting.hint} <strong>{aside}</strong></> : setting.hint;
  const shared = { label: setting.label, hint, mistake, disabled };
  switch (setting.kind) {
    case "long":
      return <AreaField {...shared} value={text(value)} onInput={(event) => onChange(typed(event))} />;
    case "count":
      return <TextField {...shared} inputMode="numeric" value={text(value)} onInput={(event) => onChange(number(typed(event)))} />;
    case "maybe-count":
      return <TextField {...shared} inputMode="numeric" value={text(value)} onInput={(event) => onChange(typed(event).trim() === "" ? null : number(typed(event)))} />;
    case "rate":
      return <TextField {...shared} value={text(value)} onInput={(event) => onChange(typed(event).trim() || null)} />;
    case "flag":
      return <Flag {...props} />;
    case "choice":
      return <SelectField {...shared} choices={setting.choices ?? []} value={text(value)} onChange={(event) => onChange(typed(event))} />;
    case "texts":
      return <AreaField {...shared} spellcheck={false} value={Array.isArray(value) ? value.join("\n") : text(value)}
        onInput={(event) => onChange(typed(event).split("\n").map((line) => line.trim()).filter(Boolean))} />;
    case "moment":
      return <Moment {...props} />;
    case "draw":
      return <Draw {...props} />;
    case "lanes":
      return <Lanes {...props} />;
    case "returning":
      return <Returning {...props} />;
    case "json":
      return <AreaField {...shared} spellcheck={false} class="mono" value={typeof value === "string" && isBroken(value) ? value : JSON.stringify(value)}
        onChange={(event) => onChange(parsed(typed(event)))} />;
    default:
      return <TextField {...shared} spellcheck={setting.kind === "text"} value={text(value)} onInput={(event) => onChange(typed(event))} />;
  }
}

function parsed(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function isBroken(given: string): boolean {
  return parsed(given) === given;
}

function Flag({ setting, value, mistake, disabled, aside, onChange }: InputProps) {
  return (
    <Field label={setting.label} mistake={mistake} hint={aside ? <>{setting.hint} <strong>{aside}</strong></> : setting.hint}>
      {({ id, describedBy, invalid }) => (
        <input type="checkbox" class="switch" id={id} aria-describedby={describedBy} aria-invalid={invalid || undefined}
          disabled={disabled} checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />
      )}
    </Field>
  );
}

/** Typed in the operator's own time, kept in UTC, and both are shown. */
function Moment({ setting, value, mistake, disabled, aside, onChange }: InputProps) {
  const iso = typeof value === "string" ? value : null;
  const hint = <>{setting.hint} {iso && !Number.isNaN(Date.parse(iso)) ? <span class="utc">{moment(iso)} here, {new Date(iso).toISOString().replace(".000", "")}.</span> : "Not set."} {aside && <strong>{aside}</strong>}</>;
  return (
    <TextField label={setting.label} hint={hint} mistake={mistake} disabled={disabled} type="datetime-local" step={1} value={local(iso)}
      onInput={(event) => {
        const at = Date.parse(typed(event));
        onChange(Number.isNaN(at) ? null : new Date(at).toISOString());
      }} />
  );
}

function local(iso: string | null): string {
  if (!iso) return "";
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function Draw({ setting, value, mistake, disabled, aside, onChange }: InputProps) {
  const beacon = typeof value === "object" && value !== null ? text((value as { beacon?: unknown }).beacon) : null;
  const kind = beacon !== null ? "beacon" : value ? "committed" : "none";
  return (
    <>
      <SelectField label={setting.label} hint={aside ? <>{setting.hint} <strong>{aside}</strong></> : setting.hint} disabled={disabled} value={kind}
        mistake={kind === "beacon" ? undefined : mistake}
        choices={[["none", "No draw: first come, first served"], ["committed", "Draw, with a committed seed"], ["beacon", "Draw, with a public beacon"]]}
        onChange={(event) => onChange({ none: null, committed: true, beacon: { beacon: "" } }[typed(event)])} />
      {kind === "beacon" && (
        <TextField label="Beacon" disabled={disabled} mistake={mistake} value={beacon ?? ""} placeholder="drand:quicknet:1234567"
          hint="A round after the start, so that nobody can know the order before." onInput={(event) => onChange({ beacon: typed(event).trim() })} />
      )}
    </>
  );
}

interface Lane {
  name: string;
  weight: unknown;
}

function Lanes({ setting, value, mistake, disabled, aside, onChange }: InputProps) {
  const lanes = Array.isArray(value) ? value as Lane[] : [];
  const change = (at: number, part: Partial<Lane>) => onChange(lanes.map((lane, index) => index === at ? { ...lane, ...part } : lane));
  return (
    <fieldset class={mistake ? "field lanes wrong" : "field lanes"}>
      <legend>{setting.label}</legend>
      {lanes.map((lane, at) => (
        <div class="lane" key={at}>
          <input type="text" aria-label={`Name of lane ${at + 1}`} value={text(lane.name)} disabled={disabled} onInput={(event) => change(at, { name: typed(event) })} />
          <input type="text" inputMode="numeric" aria-label={`Weight of lane ${at + 1}`} value={text(lane.weight)} disabled={disabled} onInput={(event) => change(at, { weight: number(typed(event)) })} />
          <button type="button" class="quiet" disabled={disabled || lanes.length === 1} aria-label={`Remove lane ${text(lane.name) || at + 1}`} onClick={() => onChange(lanes.filter((_, index) => index !== at))}>Remove</button>
        </div>
      ))}
      <button type="button" disabled={disabled} onClick={() => onChange([...lanes, { name: "", weight: 1 }])}>Add a lane</button>
      {mistake && <p class="mistake">{mistake}</p>}
      <p class="hint">{setting.hint} {aside && <strong>{aside}</strong>}</p>
    </fieldset>
  );
}

function Returning({ setting, value, mistake, disabled, aside, onChange }: InputProps) {
  const parts = typeof value === "object" && value !== null ? value as { share?: unknown; within?: unknown } : null;
  return (
    <fieldset class={mistake ? "field wrong" : "field"}>
      <legend>{setting.label}</legend>
      <label class="check"><input type="checkbox" class="switch" disabled={disabled} checked={parts !== null} onChange={(event) => onChange(event.currentTarget.checked ? { share: 20, within: "10m" } : null)} /> Their own lane</label>
      {parts && (
        <div class="pair">
          <TextField label="Percent of admissions" inputMode="numeric" disabled={disabled} value={text(parts.share)} onInput={(event) => onChange({ ...parts, share: number(typed(event)) })} />
          <TextField label="Within" disabled={disabled} value={text(parts.within)} onInput={(event) => onChange({ ...parts, within: typed(event).trim() })} />
        </div>
      )}
      {mistake && <p class="mistake">{mistake}</p>}
      <p class="hint">{setting.hint} {aside && <strong>{aside}</strong>}</p>
    </fieldset>
  );
}
