// A place in line, kept by a page. No library, no DOM: `index.html` shows how to draw it.
//
//   const place = new Place({ server: "https://wait.example.org", room: "spring-sale" });
//   place.addEventListener("change", () => draw(place));
//   place.start();
//
// It joins once (also when the answer is lost), finds its place again after a reload, hears news
// by WebSocket or else asks when it is told to, and claims the pass when its turn has come.

/** What a refused token means for the place: it is gone, and only joining again helps. */
const LOST = new Set(["token_invalid", "ticket_unknown", "ticket_forgotten", "place_lost", "moved_elsewhere"]);
const RETRY_MS = 2_000;
const RETRY_MAX_MS = 30_000;
/** A line that went dead says nothing; so even with a socket one asks now and then. */
const BESIDE_SOCKET_MS = 30_000;
/** After so many sockets that never opened, something on the way does not let them through. */
const DEAF = 3;

export class Place extends EventTarget {
  constructor({ server, room, storage = localStorage }) {
    super();
    this.base = `${server}/v1/rooms/${room}`;
    this.storage = storage;
    this.name = `waitroom:${room}`;
    this.kept = JSON.parse(storage.getItem(this.name) ?? "{}");
    /** The newest visitor answer; null before the first. */
    this.answer = null;
    /** The smallest position seen: it never rises before the visitor's eyes. */
    this.position = null;
    /** Why there is no place any more: the code of a problem, or null. */
    this.lost = null;
    /** Whether the last attempt to ask failed. */
    this.offline = false;
    this.failures = 0;
    this.unopened = 0;
    // A phone that wakes up asks at once: timers slept as well.
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.kept.token && !this.ended) this.look();
    });
  }

  get ended() {
    return this.lost !== null || !["waiting", "admitted", "active", undefined].includes(this.answer?.status);
  }

  /** Finds the place of an earlier visit, or takes one. */
  start() {
    return this.kept.token ? this.look() : this.join();
  }

  async join() {
    this.lost = this.answer = this.position = null;
    // The key is written down before it is used: whatever happens to the answer, a repeat with
    // the same key finds the same place.
    this.keep({ key: this.kept.key ?? randomKey(), token: undefined });
    const answer = await this.ask("POST", "/join", { "Idempotency-Key": this.kept.key });
    if (!answer) return this.later(() => this.join());
    this.keep({ key: undefined });
    this.take(answer);
    this.listen();
  }

  /** Asks how things stand; also a sign of life. */
  async look() {
    if (this.looking) return;
    this.looking = true;
    const answer = await this.ask("GET", `/status?version=${this.answer?.version ?? 0}`);
    this.looking = false;
    if (answer) this.take(answer);
    if (this.ended) return;
    if (!answer) this.socket?.close();
    if (answer && !this.socket) return this.listen();
    this.later(() => this.look());
  }

  async leave() {
    const answer = await this.ask("POST", "/leave");
    if (answer) this.take(answer);
  }

  /** Live news: a single-use ticket, so that the token stands in no address. */
  async listen() {
    if (!globalThis.WebSocket || this.unopened >= DEAF || this.ended) return this.later(() => this.look());
    if (this.opening) return;
    this.opening = true;
    const live = await this.ask("POST", "/live-ticket");
    this.opening = false;
    if (!live) return this.later(() => this.look());
    const socket = new WebSocket(`${this.base.replace(/^http/, "ws")}/live?live_ticket=${live.live_ticket}`);
    this.socket = socket;
    this.unopened += 1;
    socket.onopen = () => {
      this.unopened = 0;
      this.later(() => this.look());
    };
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data);
      if (frame.type === "ticket") this.take(frame);
      if (frame.type === "board") this.read(frame.board);
    };
    socket.onclose = () => {
      this.socket = null;
      if (!this.ended) this.later(() => this.look());
    };
  }

  take(answer) {
    // An answer that knows less than the last one came from an instance that is behind.
    if (this.answer && answer.version < this.answer.version) return;
    if (answer.token) this.keep({ token: answer.token });
    this.answer = { ...answer, enter_url: answer.enter_url ?? this.answer?.enter_url };
    this.show(answer.position);
    if (["admitted", "active"].includes(answer.status) && !this.answer.enter_url) this.claim();
    if (this.ended) this.forget();
    this.changed();
  }

  /** Everybody gets the same board; the position follows from one's own place. */
  read(board) {
    const place = this.answer?.place;
    if (this.answer?.status !== "waiting" || !place || board.draw_pending) return;
    const lane = board.lanes.find(it => it.lane === place.lane);
    if (!lane || board.version < this.answer.version) return;
    this.show(positionOn(lane, place.order));
    this.changed();
  }

  show(position) {
    if (position === null || position === undefined) this.position = null;
    else this.position = Math.min(this.position ?? Infinity, position);
  }

  /** Exchanges the turn for a pass; a repeat gives the same. */
  async claim() {
    if (this.claiming) return;
    this.claiming = true;
    const answer = await this.ask("POST", "/claim");
    this.claiming = false;
    if (answer) this.take(answer);
    else if (!this.ended) this.later(() => this.look());
  }

  /** A JSON answer; null when it did not come. Refusals that end the place set `lost`. */
  async ask(method, path, headers = {}) {
    if (this.kept.token) headers.Authorization = `Bearer ${this.kept.token}`;
    this.wait_ms = null;
    try {
      const answer = await fetch(this.base + path, { method, headers, signal: AbortSignal.timeout(15_000) });
      const said = await answer.json();
      this.offline = false;
      if (answer.ok) {
        this.failures = 0;
        return said;
      }
      this.wait_ms = said.retry_after_ms ?? null;
      if (LOST.has(said.code) || ["room_ended", "room_unknown"].includes(said.code)) {
        this.lost = said.code;
        this.forget();
      }
    } catch {
      this.offline = true;
    }
    this.failures += 1;
    this.changed();
    return null;
  }

  /** Comes back when the server said, or ever more seldom while it says nothing. */
  later(then) {
    if (this.ended) return;
    clearTimeout(this.timer);
    const backoff = Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** (this.failures - 1)) * (0.5 + Math.random() / 2);
    const told = this.socket ? BESIDE_SOCKET_MS : this.answer?.next_check_ms ?? RETRY_MS;
    this.timer = setTimeout(then, this.failures ? Math.max(backoff, this.wait_ms ?? 0) : told);
  }

  keep(change) {
    this.kept = { ...this.kept, ...change };
    this.storage.setItem(this.name, JSON.stringify(this.kept));
  }

  forget() {
    this.kept = {};
    this.storage.removeItem(this.name);
    clearTimeout(this.timer);
    this.socket?.close();
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** Counts those who wait before `order`: exact among the first thousand, within a percent behind. */
export function positionOn(lane, order) {
  let before = 0;
  let at = lane.from;
  for (const [turn, run] of lane.front.entries()) {
    const waits = turn % 2 === 0;
    if (order < at + run) return before + (waits ? Math.max(0, order - at) : 0) + 1;
    at += run;
    if (waits) before += run;
  }
  for (const { size, missing } of lane.stretches) {
    const wide = 2 ** size;
    for (const gone of missing) {
      if (order < at + wide) return before + Math.floor((Math.max(0, order - at) * (wide - gone)) / wide) + 1;
      at += wide;
      before += wide - gone;
    }
  }
  return before + 1;
}

/** 128 random bits, so that nobody guesses somebody else's join. */
function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
