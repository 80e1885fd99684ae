// API keys: who has one, new ones, followers, ends.
import { useRef, useState } from "preact/hooks";
import { ask, path } from "../api";
import { ago, moment } from "../format";
import { Empty, Failed, Waiting } from "../parts/bits";
import { Ask, Dialog } from "../parts/dialog";
import { SelectField, TextField } from "../parts/field";
import { useLoaded } from "../parts/load";
import { say } from "../parts/say";
import { may, me } from "../session";
import { useNow } from "../store";
import type { ApiKey, FreshKey } from "../wire";

type Open = { act: "create" } | { act: "rotate" | "revoke"; key: ApiKey } | { act: "shown"; key: FreshKey };

const ROLES: ReadonlyArray<readonly [string, string]> = [
  ["viewer", "Viewer: looks at everything"],
  ["operator", "Operator: runs sales"],
  ["owner", "Owner: settings, rooms and keys as well"],
];

export function KeysView() {
  const keys = useLoaded<ApiKey[]>(async () => (await ask<{ keys: ApiKey[] }>("GET", "/keys")).keys, []);
  const [open, setOpen] = useState<Open | null>(null);
  useNow(10_000);
  // By the clock and not by the last beat: a key that just ended shows it at once.
  const now = Date.now();
  const close = () => setOpen(null);
  const made = async (key: FreshKey) => {
    await keys.again();
    setOpen({ act: "shown", key });
  };
  if (!may("owner")) return <><h1>Keys</h1><Empty title="Keys are an owner’s business."><p>Your key is a {me.value?.role}’s.</p></Empty></>;
  return (
    <>
      <div class="heading">
        <div><h1>Keys</h1><p class="sub">One for each person and program: then the audit says who it was.</p></div>
        <button type="button" class="main" onClick={() => setOpen({ act: "create" })}>New key…</button>
      </div>
      {!keys.value && (keys.problem ? <Failed what="The keys" message={keys.problem.message} again={() => void keys.again()} /> : <Waiting what="keys" />)}
      {keys.value?.length === 0 && <Empty title="There are no keys." />}
      {keys.value && keys.value.length > 0 && (
        <ul class="keys">
          {[...keys.value].sort(byUse).map((key) => (
            <li key={key.id} class={state(key, now) === "works" ? "card" : "card ended"}>
              <h2><code>{key.id}</code> <span class={`pill ${key.role === "owner" ? "warn" : "calm"}`}>{key.role}</span> {stateWord(key, now)}</h2>
              <p class="sub">{key.note || "no note"}</p>
              <p class="facts">
                <span title={moment(key.created_at)}>made {ago(key.created_at, now)} by {key.created_by}</span>
                <span>{key.last_used_at ? `last used ${ago(key.last_used_at, now)}` : "never used"}</span>
                {key.expires_at && <span title={moment(key.expires_at)}>{Date.parse(key.expires_at) > now ? "ends" : "ended"} {ago(key.expires_at, now)}</span>}
                {key.replaced_by && <span>followed by <code>{key.replaced_by}</code></span>}
              </p>
              {state(key, now) === "works" && (
                <div class="tools">
                  <button type="button" aria-label={`Rotate… ${key.id}`} onClick={() => setOpen({ act: "rotate", key })}>Rotate…</button>
                  <button type="button" class="grave-quiet" aria-label={`Revoke… ${key.id}`} onClick={() => setOpen({ act: "revoke", key })}>Revoke…</button>
                </div>
              )}
            </li>
          ))}
        </ul>
      )}
      {open?.act === "create" && <Create onClose={close} onMade={made} />}
      {open?.act === "rotate" && <Rotate of={open.key} onClose={close} onMade={made} />}
      {open?.act === "revoke" && <Revoke of={open.key} onClose={close} onDone={keys.again} />}
      {open?.act === "shown" && <Shown of={open.key} onClose={close} />}
    </>
  );
}

function state(key: ApiKey, now: number): "works" | "revoked" | "expired" {
  if (key.revoked_at) return "revoked";
  return key.expires_at && Date.parse(key.expires_at) <= now ? "expired" : "works";
}

function stateWord(key: ApiKey, now: number) {
  const word = state(key, now);
  if (key.id === me.value?.id) return <span class="pill good">yours</span>;
  return word === "works" ? null : <span class="pill over">{word}</span>;
}

/** Those that work first, then by age. */
function byUse(a: ApiKey, b: ApiKey): number {
  const over = (key: ApiKey) => Number(state(key, Date.now()) !== "works");
  return over(a) - over(b) || Date.parse(b.created_at) - Date.parse(a.created_at);
}

interface MakeProps {
  onClose: () => void;
  onMade: (key: FreshKey) => Promise<void>;
}

function Create({ onClose, onMade }: MakeProps) {
  const fresh = useRef<FreshKey | null>(null);
  return (
    <Ask title="New key" act="Make the key" onClose={() => fresh.current ? void onMade(fresh.current) : onClose()}
      onAct={async (form) => {
        const life = String(form.get("expires_in")).trim();
        fresh.current = await ask<FreshKey>("POST", "/keys", { role: form.get("role"), note: String(form.get("note")).trim(), ...(life ? { expires_in: life } : {}) });
      }}>
      {(problem) => (
        <>
          <SelectField label="Role" name="role" choices={ROLES} value="viewer" mistake={problem?.of("role")} />
          <TextField label="Note" name="note" spellcheck mistake={problem?.of("note")} hint="Who or what will use it." />
          <TextField label="Ends after" name="expires_in" mistake={problem?.of("expires_in")} hint="30d, 12h; empty: it does not end by itself." />
        </>
      )}
    </Ask>
  );
}

function Rotate({ of, onClose, onMade }: MakeProps & { of: ApiKey }) {
  const fresh = useRef<FreshKey | null>(null);
  return (
    <Ask title={`Rotate ${of.id}`} act="Make its follower" onClose={() => fresh.current ? void onMade(fresh.current) : onClose()}
      onAct={async (form) => {
        const overlap = String(form.get("overlap")).trim();
        fresh.current = await ask<FreshKey>("POST", path`/keys/${of.id}/rotate`, overlap ? { overlap } : {});
      }}>
      {(problem) => (
        <>
          <p>A new key of the same role. The old one works on for a while, so that everybody who has it can change over.</p>
          <TextField label="The old one works for" name="overlap" value="24h" mistake={problem?.of("overlap")} hint="24h, 30m; 0s ends it at once." />
        </>
      )}
    </Ask>
  );
}

function Revoke({ of, onClose, onDone }: { of: ApiKey; onClose: () => void; onDone: () => Promise<void> }) {
  const mine = of.id === me.value?.id;
  return (
    <Ask title={`Revoke ${of.id}`} act="Revoke the key" tone="grave" onClose={onClose}
      onAct={async () => {
        await ask("DELETE", path`/keys/${of.id}`);
        await onDone();
        say(`The key ${of.id} was revoked.`);
      }}>
      <p>{mine ? "This is your own key: you will be signed out." : "Whoever uses it is refused from now on."} It cannot be taken back.</p>
    </Ask>
  );
}

function Shown({ of, onClose }: { of: FreshKey; onClose: () => void }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(of.key).then(() => setCopied(true), () => say("The browser does not let us copy; select it by hand.", "bad"));
  };
  return (
    <Dialog title={`The key ${of.id}`} onClose={onClose}>
      <p>It is shown this once and kept nowhere. Copy it now.</p>
      <p class="secret"><code tabIndex={0} aria-label="The text of the key">{of.key}</code></p>
      <p role="status" class="hint">{copied ? "Copied." : "\u00a0"}</p>
      <div class="buttons">
        <button type="button" onClick={() => void copy()}>Copy</button>
        <button type="button" class="main" onClick={onClose}>I have it</button>
      </div>
    </Dialog>
  );
}
