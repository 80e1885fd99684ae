// Who did what: the audit of the installation, or of one room, the newest first.
import { useEffect, useState } from "preact/hooks";
import { type Problem, ask, asProblem } from "../api";
import { ago, moment, plain, words } from "../format";
import { Empty, Failed, Waiting } from "../parts/bits";
import { to } from "../route";
import { useNow } from "../store";
import type { AuditEntry, AuditPage } from "../wire";

/** Indexes looked at in one request: with a room asked for, most of them are others'. */
const STRIDE = 500;
/** So many entries are enough for a screen; earlier ones are asked for. */
const ENOUGH = 50;
const EVERY_MS = 5_000;

export function AuditView() {
  return (
    <>
      <div class="heading"><div><h1>Audit</h1><p class="sub">Every act of every operator, in a chain that cannot be rewritten unseen.</p></div></div>
      <AuditList room={null} />
    </>
  );
}

interface Trail {
  entries: AuditEntry[];
  /** All before this index are still unseen. */
  from: number;
  head: number;
}

function fetched(room: string | null, after: number, limit: number): Promise<AuditPage> {
  const query = new URLSearchParams({ after: String(after), limit: String(limit), ...(room ? { room } : {}) });
  return ask<AuditPage>("GET", `/audit?${query}`);
}

/** Goes back from `before` until enough were found or the beginning is reached. */
async function earlier(room: string | null, trail: Trail): Promise<Trail> {
  let { from } = trail;
  const found: AuditEntry[] = [];
  while (from > 0 && found.length < ENOUGH) {
    const start = Math.max(0, from - STRIDE);
    const page = await fetched(room, start, STRIDE);
    found.unshift(...page.entries.filter((entry) => entry.index <= from));
    from = start;
  }
  return { ...trail, entries: [...trail.entries, ...found.reverse()], from };
}

async function newest(room: string | null): Promise<Trail> {
  const { head } = await fetched(room, 0, 1);
  return earlier(room, { entries: [], from: head, head });
}

async function later(room: string | null, trail: Trail): Promise<Trail> {
  const page = await fetched(room, trail.head, STRIDE);
  return { ...trail, entries: [...page.entries.reverse(), ...trail.entries], head: Math.max(page.next, trail.head) };
}

export function AuditList({ room }: { room: string | null }) {
  const [trail, setTrail] = useState<Trail | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const now = useNow(EVERY_MS);
  const change = async (next: () => Promise<Trail>) => {
    try {
      setTrail(await next());
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  useEffect(() => {
    setTrail(null);
    void change(() => newest(room));
  }, [room]);
  useEffect(() => {
    if (trail) void change(() => later(room, trail));
  }, [now]);
  if (!trail) return problem ? <Failed what="The audit" message={problem.message} again={() => void change(() => newest(room))} /> : <Waiting what="the audit" />;
  if (!trail.entries.length && trail.from === 0) return <Empty title="Nobody did anything yet."><p>Every change by an operator will stand here.</p></Empty>;
  return (
    <>
      <ol class="audit card">
        {trail.entries.map((entry) => (
          <li key={entry.index}>
            <time dateTime={entry.at} title={moment(entry.at)}>{ago(entry.at, now)}</time>
            <div>
              <p>
                <b>{entry.who}</b> {DEEDS[entry.action] ?? words(entry.action)} <Subject entry={entry} />
                {!room && entry.room && <>{SAYS_ROOM.has(entry.action) ? "" : "in "}<a href={to.room(entry.room)}>{entry.room}</a></>}
                {room && SAYS_ROOM.has(entry.action) && "the room"}
              </p>
              <Facts before={entry.before} after={entry.after} />
            </div>
            <small class="index">#{entry.index}</small>
          </li>
        ))}
      </ol>
      {trail.from > 0 && <button type="button" onClick={() => void change(() => earlier(room, trail))}>Earlier</button>}
    </>
  );
}

const DEEDS: Record<string, string> = {
  configure: "changed the settings of",
  pause: "paused",
  maintenance: "began maintenance of",
  drain: "drained",
  resume: "resumed",
  finish: "finished",
  reopen: "reopened",
  admit: "let people in",
  revoke: "revoked the ticket",
  move: "moved the ticket",
  key_create: "made the key",
  key_rotate: "rotated the key",
  key_revoke: "revoked the key",
};
/** Deeds whose words end with the room. */
const SAYS_ROOM = new Set(["configure", "pause", "maintenance", "drain", "resume", "finish", "reopen"]);

function Subject({ entry }: { entry: AuditEntry }) {
  const [old, fresh] = [table(entry.before), table(entry.after)];
  const named = old.key ?? fresh.key ?? old.ticket ?? fresh.ticket;
  return typeof named === "string" ? <><code>{named}</code>{" "}</> : null;
}

const table = (value: unknown): Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : {};

/** What differs; the rest of both is the same and says nothing. */
function Facts({ before, after }: { before: unknown; after: unknown }) {
  const [old, fresh] = [table(before), table(after)];
  const names = [...new Set([...Object.keys(old), ...Object.keys(fresh)])]
    .filter((name) => JSON.stringify(old[name]) !== JSON.stringify(fresh[name]))
    // Said already; and a reason that there is not says nothing.
    .filter((name) => !(name === "key" && before === null) && !(before === null && fresh[name] === null));
  if (!names.length) return null;
  if (before === null && names.length > 6) return <p class="facts">{names.length} settings were given</p>;
  return (
    <p class="facts">
      {names.map((name) => (
        <span key={name}>{words(name.replace(/_ms$/, ""))}: {before !== null && name in old && <><del>{told(name, old[name])}</del> <span aria-hidden="true">→</span><span class="unseen">to</span> </>}<ins>{told(name, fresh[name])}</ins></span>
      ))}
    </p>
  );
}

function told(name: string, value: unknown): string {
  return name.endsWith("_at_ms") && typeof value === "number" ? moment(new Date(value).toISOString()) : plain(value);
}
