// Every setting that the editor knows by name: its words, its kind and where it stands.
//
// A setting that is not here is still shown, as JSON, under "Other": a newer server needs no
// newer console. To add one: a row.

export type Kind = "text" | "long" | "count" | "maybe-count" | "span" | "rate" | "flag" | "choice" | "moment" | "draw" | "lanes" | "returning" | "texts" | "json";

export interface Key {
  name: string;
  label: string;
  kind: Kind;
  hint: string;
  choices?: ReadonlyArray<readonly [value: string, label: string]>;
}

export interface Group {
  title: string;
  keys: Key[];
}

/** What a key of role operator may change; the server is asked for the rest in vain. */
export const OPERATORS_KEYS = ["rate", "burst", "max_active", "max_waiting", "message"];

export const GROUPS: Group[] = [
  {
    title: "What visitors see",
    keys: [
      { name: "title", label: "Title", kind: "text", hint: "What visitors and operators call the room." },
      { name: "target_url", label: "Target", kind: "text", hint: "Where an admitted visitor goes." },
      { name: "message", label: "Message", kind: "long", hint: "Read by everybody who waits; it stops nothing. At most 500 letters." },
      { name: "theme", label: "Theme", kind: "json", hint: "Colours, logo and texts of the waiting page, as JSON; null is the usual one." },
      { name: "template", label: "Template", kind: "json", hint: "What stands around the waiting page, as a JSON text with {{> waiting}} in it; null is nothing." },
      { name: "public_board", label: "Public board", kind: "choice", hint: "What everybody may know of the queue.",
        choices: [["full", "Full: exact lengths"], ["coarse", "Coarse: rounded lengths"], ["off", "Off: nothing public"]] },
    ],
  },
  {
    title: "Pace and capacity",
    keys: [
      { name: "max_active", label: "Inside at most", kind: "count", hint: "What the site must bear. Lowering it evicts nobody." },
      { name: "max_waiting", label: "Waiting at most", kind: "count", hint: "0 means no limit." },
      { name: "rate", label: "Pace", kind: "rate", hint: "10/s, 500/min; empty: only operators let people in." },
      { name: "burst", label: "Burst", kind: "maybe-count", hint: "Admissions saved up while nobody comes. Empty: one tick’s worth." },
      { name: "tick", label: "Tick", kind: "span", hint: "How often the room looks whether somebody may enter." },
      { name: "queue_all", label: "Everyone queues", kind: "flag", hint: "Otherwise a quiet room lets people straight through." },
      { name: "no_show", label: "After a no-show", kind: "choice", hint: "Whether an admission that nobody used counts against the pace.",
        choices: [["keep", "It counts"], ["return", "It is given back"]] },
    ],
  },
  {
    title: "Lanes",
    keys: [
      { name: "lanes", label: "Lanes", kind: "lanes", hint: "They share admissions by weight; weight 0 is served when no other lane has anybody. A lane that gave out a place stays." },
      { name: "returning", label: "Returning visitors", kind: "returning", hint: "A lane for people who come back soon after they lost or left their place." },
    ],
  },
  {
    title: "Coming in and staying",
    keys: [
      { name: "claim", label: "Coming in", kind: "choice", hint: "Whether the visitor fetches the pass.",
        choices: [["explicit", "The visitor fetches the pass"], ["on_admission", "At once, by itself"]] },
      { name: "claim_within", label: "Must come within", kind: "span", hint: "Then the place goes to the next. Phones need a moment to wake." },
      { name: "session_timeout", label: "Session", kind: "span", hint: "How long somebody inside may do nothing." },
      { name: "session_renewal", label: "Activity renews the session", kind: "flag", hint: "Otherwise it ends after that time whatever one does." },
      { name: "pass_life", label: "Life of a pass", kind: "span", hint: "0s: as long as the session." },
      { name: "pass_leeway", label: "Leeway", kind: "span", hint: "How much later a gate with a slow clock may still accept a pass." },
      { name: "keep_inside", label: "Maintenance leaves those inside alone", kind: "flag", hint: "Otherwise they see the maintenance page too." },
    ],
  },
  {
    title: "Waiting",
    keys: [
      { name: "heartbeat_timeout", label: "Silent at most", kind: "span", hint: "Longer, and the place is lost. Two minutes forgive a tunnel." },
      { name: "heartbeat_interval", label: "Heard of every", kind: "span", hint: "0s lets the server choose. A third of the above or less." },
      { name: "ticket_life", label: "Life of a ticket", kind: "span", hint: "0s: no limit." },
      { name: "memory", label: "Remembered for", kind: "span", hint: "How long a finished ticket can still be looked up." },
      { name: "shuffle_window", label: "Shuffle window", kind: "count", hint: "1 is first come, first served." },
    ],
  },
  {
    title: "Privacy and other sites",
    keys: [
      { name: "keep_user_id", label: "Keep the shop’s name for a user", kind: "flag", hint: "Sealed, and told with events." },
      { name: "allowed_origins", label: "Sites whose pages may talk to this room", kind: "texts", hint: "One on each line, such as https://shop.example; * is all." },
    ],
  },
];

export const SCHEDULE: Group = {
  title: "Schedule and draw",
  keys: [
    { name: "opens_at", label: "Doors open", kind: "moment", hint: "From then on people may join." },
    { name: "starts_at", label: "Sale starts", kind: "moment", hint: "From then on people are let in." },
    { name: "ends_at", label: "Sale ends", kind: "moment", hint: "Then waiting tickets end." },
    { name: "draw", label: "Draw", kind: "draw", hint: "Those who came before the start draw lots for their order; later ones follow as they come." },
  ],
};

const KNOWN = new Set([...GROUPS, SCHEDULE].flatMap((group) => group.keys.map((key) => key.name)));

/** What the server has and this table does not. */
export function others(settings: Record<string, unknown>): Group | null {
  const names = Object.keys(settings).filter((name) => !KNOWN.has(name)).sort();
  if (!names.length) return null;
  return { title: "Other", keys: names.map((name) => ({ name, label: name, kind: "json", hint: "As JSON." })) };
}
