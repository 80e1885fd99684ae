// The waiting page's script: joins, listens, shows, and goes in when it is time.
//
// Lives here: what a page knows (an answer, boards), what it may show of it, and how it hears of
// changes: WebSocket, then server-sent events, then asking when the server said to.
// Stays out: deciding anything. The server's answer is the truth; a lost connection, a sleeping
// phone or a second tab only means that we ask again.
// Browsers of 2019 can run it: newer ones than the words below ask for are looked for before use.
// Lines that begin with two slashes and indentation are taken out before it is sent.
"use strict";
(() => {
// ---- What a board says about a place (the server does the same in public_board.rs) ----

// How many wait before `place`, plus one; null when the board does not reach that far.
const position = (board, place) => {
  const lane = board.lanes.find(one => one.lane === place.lane);
  if (!lane) return null;
  const order = place.order;
  let before = 0, at = lane.from;
  for (let i = 0; i < lane.front.length; i++) {
    const run = lane.front[i], waits = i % 2 === 0;
    if (order < at + run) return before + (waits ? Math.max(order - at, 0) : 0) + 1;
    at += run;
    if (waits) before += run;
  }
  for (const { size, missing } of lane.stretches) {
    const orders = 2 ** size;
    for (const gone of missing) {
      const ones = orders - gone;
      // Divided first: a power of two loses nothing, a product of two large numbers would.
      if (order < at + orders) return before + Math.floor((Math.max(order - at, 0) / orders) * ones) + 1;
      at += orders;
      before += ones;
    }
  }
  return null;
};

// What is remembered of one ticket: where it began and the smallest position shown. Positions
// read off a coarse part of the board may rise by a percent; what is shown never does.
const remember = (memory, answer) =>
  memory && memory.ticket === answer.ticket ? memory
    : { ticket: answer.ticket, since: answer.version, first: null, low: null };

const see = (memory, found) => {
  if (found === null || found === undefined) return;
  if (memory.first === null) memory.first = found;
  memory.low = memory.low === null ? found : Math.min(memory.low, found);
};

// A board older than the place does not know of those who came just before it.
const seeBoard = (memory, answer, board) => {
  if (board.draw_pending || board.version < memory.since || answer.position === null || !answer.place) return;
  see(memory, position(board, answer.place));
};

// ---- Words ----

const speaker = (lang, words) => {
  const plural = new Intl.PluralRules(lang), figures = new Intl.NumberFormat(lang);
  const number = n => figures.format(n);
  const t = (key, values = {}) => {
    let text = words[key];
    if (typeof text === "object") text = text[plural.select(values.count)] || text.other;
    return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  };
  // An interval of seconds, in a unit and with figures as coarse as the knowledge is.
  const span = (low, high) => {
    if (high < 60) return t("under_minute");
    const hours = high >= 10800;
    const unit = hours ? 3600 : high >= 1800 ? 300 : 60, each = hours ? 1 : unit / 60;
    const a = Math.floor(low / unit) * each, b = Math.ceil(high / unit) * each;
    return t(hours ? "hour" : "minute", { count: b, n: a === b ? number(b) : number(a) + "–" + number(b) });
  };
  return { t, number, span };
};

// A telephone number as the server reads it: plain figures, without what people put between them.
// Anything else stays, for the server to refuse: a number must not become another one here.
const phone = text => text
  .replace(/[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef]/g, one => {
    const code = one.charCodeAt(0);
    return (code > 0x900 ? code - 6 : code) & 15;
  })
  .replace("(0)", "")
  .replace(/[\s\-./()[\]\u200e\u200f\u202a-\u202e]/g, "");

if (typeof document === "undefined") {
  globalThis.waitroom = { position, remember, see, seeBoard, speaker, phone };
  return;
}

// ---- The page ----

const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const { t, number, span } = speaker(data.lang, data.words);
const percent = new Intl.NumberFormat(data.lang, { style: "percent" });
const two = new Intl.NumberFormat(data.lang, { minimumIntegerDigits: 2 });
const ago = Intl.RelativeTimeFormat && new Intl.RelativeTimeFormat(data.lang);
// The server's clock, as far as a page can know it: it said the time when its answer began to arrive.
const arrival = performance.getEntriesByType("navigation")[0];
const skew = data.now ? data.now - performance.timeOrigin - (arrival ? arrival.responseStart : 0) : 0;
const serverNow = () => Date.now() + skew;

// Storage may be forbidden; then a reload forgets the smallest position, nothing worse.
const stored = (store, value) => {
  const name = "wr-" + data.room;
  try {
    const box = window[store];
    if (value === undefined) return box.getItem(name);
    if (value === null) box.removeItem(name); else box.setItem(name, value);
  } catch { /* private mode */ }
  return null;
};

// Boards come several times a second; what is remembered changes less often.
let kept = "";
const keep = () => {
  const now = JSON.stringify(memory);
  if (now !== kept) stored("localStorage", kept = now);
};

let answer = null, memory = null, heard = 0, seen = 0, token = null, bearer = false;
let state = document.documentElement.dataset.state, note = null, entering = false, armed = null, rung = false;
// How this browser is pushed to, where it can be (push-page.js).
let push = null;
try { memory = JSON.parse(stored("localStorage")); } catch { /* not ours */ }

const text = (id, value) => {
  const element = $(id);
  element.hidden = value === null || value === undefined || value === "";
  if (!element.hidden && element.textContent !== value) element.textContent = value;
};

// A screen reader hears of changes that matter, and of the position now and then.
let said = "", saidAt = 0, saidNumber = null;
const say = words => {
  if (words === said) return;
  said = words;
  saidAt = Date.now();
  $("say").textContent = words;
};

const LOST = { heartbeat_timeout: "silent", no_show: "no_show", too_old: "too_old", session_over: "session",
  checkout_failed: "session", checkout_expired: "session", revoked: "revoked", left: "left", completed: "completed",
  moved: "moved", moved_elsewhere: "moved", place_lost: "failure", ticket_unknown: "failure",
  ticket_forgotten: "forgotten", claim_too_late: "no_show" };

const ROOM = { scheduled: "before", held: "before", drawing: "drawing", paused: "paused", maintenance: "maintenance" };

const stateOf = it => it.status === "waiting" ? ROOM[it.room_status] || "waiting"
  : it.status === "admitted" || it.status === "active" ? "turn"
  : it.status === "closed" ? "ended" : "lost";

const headOf = () => t({ finding: "finding", waiting: "in_line", lost: "lost", error: "error" }[state]
  || (state === "ended" && soldOut() ? "sold_out" : entering ? "entering" : state));
const soldOut = () => /^sold.?out/i.test(note || "");

const leadOf = because => ({
  finding: () => t("finding_note"), waiting: () => data.renewed ? t("new_place") : null,
  before: () => t(draws() ? "draw_note" : "before_note") + (draws() && data.draw ? " " + t("draw_" + data.draw) : ""),
  lost: () => t("lost_" + (LOST[because] || "forgotten")), turn: () => entering ? null : t("turn_note"),
}[state] || (() => t(state + "_note")))();
const draws = () => answer ? answer.draw_pending : data.draw;

// Everything that is seen, from what is known. Called often; touches only what differs.
const show = (next, because) => {
  const changed = next !== state;
  state = next;
  document.documentElement.dataset.state = state;
  const waits = ["waiting", "paused", "maintenance"].includes(state) && answer && memory && memory.low !== null;
  const n = waits ? memory.low : null;
  text("head", headOf());
  text("lead", leadOf(because));
  notice();
  const counts = Boolean(["before", "not_open", "turn"].includes(state) && until());
  $("ticket").hidden = !(waits || counts || (answer && ["turn", "before", "drawing"].includes(state)));
  if (waits) {
    text("label", t("place"));
    text("number", number(n));
    text("sub", n > 1 ? t("ahead", { count: n - 1, n: number(n - 1) }) : t("next"));
  } else {
    text("label", counts ? t({ before: "starts_in", not_open: "opens_in", turn: "turn_left" }[state]) : null);
    text("number", counts ? clock(until() - serverNow()) : null);
    const starts = state === "before" && data.starts;
    text("sub", starts ? t("starts_at", { time: new Date(data.starts).toLocaleString(data.lang, { dateStyle: "medium", timeStyle: "short" }) }) : null);
  }
  $("number").classList.toggle("long", counts || $("number").textContent.length > 6);
  progress(waits ? n : null);
  const wait = answer && answer.wait;
  $("wait_row").hidden = !waits;
  if (waits) text("wait", wait ? span(wait.low_s, wait.high_s) : t("wait_unknown"));
  $("wait_note").hidden = !(waits && wait);
  $("code_row").hidden = !(answer && answer.support_code);
  if (answer) text("code", answer.support_code);
  $("go").hidden = state !== "turn" || entering;
  const over = ["lost", "ended", "turn"].includes(state), live = answer && !over;
  // Nothing that was asked while waiting stands before the way in.
  if (over) document.querySelectorAll("dialog[open]").forEach(one => one.close());
  $("actions").hidden = $("keep").hidden = !live;
  $("again_row").hidden = state !== "lost" && state !== "error";
  $("again_note").hidden = state !== "lost";
  if (state === "error") text("again", t("refresh"));
  $("notify").hidden = Boolean(armed);
  fresh();
  variables(wait);
  document.title = state === "turn" ? "● " + t("turn") : waits ? number(n) + " · " + data.title : data.title;
  if (changed) say(headOf() + ". " + (waits ? $("sub").textContent : $("lead").textContent));
  else if (waits && Date.now() - saidAt > 6e4 && n !== saidNumber) say($("sub").textContent);
  if (waits && Date.now() - saidAt < 50) saidNumber = n;
};

const notice = () => {
  const box = $("notice"), from = note && !(state === "ended" && soldOut() && note.length < 10) ? note : data.message;
  box.hidden = !from;
  if (!from || box.lastChild && box.lastChild.textContent === from) return;
  const label = document.createElement("b");
  label.textContent = t("message");
  // What went wrong is nothing that an organiser says.
  box.textContent = "";
  if (state !== "error") box.append(label);
  box.append(from);
};

const progress = n => {
  const shown = n !== null && memory.first > n;
  $("line").hidden = $("done").hidden = !shown;
  if (!shown) return;
  const part = (memory.first - n) / memory.first, whole = Math.floor(part * 100);
  $("line").style.setProperty("--done", part * 100 + "%");
  $("line").setAttribute("aria-valuenow", whole);
  text("done", t("done", { p: percent.format(whole / 100) }));
};

const until = () => state === "turn" ? answer && answer.claim_by && Date.parse(answer.claim_by)
  : state === "not_open" ? data.opens : data.starts;

// Rounded down: nobody shall count on a second that is not there.
const clock = ms => {
  const s = Math.max(0, Math.floor(ms / 1000)), h = Math.floor(s / 3600);
  return (h ? number(h) + ":" + two.format(Math.floor(s / 60) % 60) : number(Math.floor(s / 60))) + ":" + two.format(s % 60);
};

// How old the news is. Old means: two and a half times as old as it should get.
const fresh = () => {
  const age = Date.now() - heard, offline = navigator.onLine === false;
  $("fresh").hidden = !answer || ["lost", "ended", "turn"].includes(state);
  const old = offline || age > Math.max(2e4, 2.5 * expected());
  $("fresh").classList.toggle("old", old);
  const s = Math.round(age / 1000);
  text("fresh_text", offline ? t("offline") : (old ? t("stale") + " " : "") + (s < 2 || !ago ? t("updated_now")
    : t("updated", { ago: s < 60 ? ago.format(-s, "second") : ago.format(-Math.floor(s / 60), "minute") })));
  if (old && answer && !$("fresh").hidden) say(t(offline ? "offline" : "stale"));
};

// Variables and sections of a room's own template.
const variables = wait => {
  const minutes = wait ? Math.ceil(wait.likely_s / 60) : 0;
  const values = {
    waitTimeKnown: Boolean(wait), waitTime: minutes, waitTimeHours: Math.floor(minutes / 60), waitTimeHourMinutes: minutes % 60,
    waitTimeFormatted: wait ? span(wait.low_s, wait.high_s) : t("wait_unknown"), queueIsFull: state === "full",
    position: memory && memory.low, ahead: memory && memory.low ? memory.low - 1 : null, isEventPrequeueing: state === "before",
    isEventActive: state !== "before" && state !== "not_open", lastUpdated: new Date(heard || Date.now()).toLocaleTimeString(data.lang),
    reason: note, paused: state === "paused", supportCode: answer && answer.support_code };
  for (const one of document.querySelectorAll("[data-v]")) {
    const value = values[one.dataset.v];
    if (one.dataset.v in values) one.textContent = typeof value === "number" ? number(value) : value === null || value === false ? "" : value;
  }
  for (const one of document.querySelectorAll("[data-if]")) if (one.dataset.if in values) one.hidden = !values[one.dataset.if];
  for (const one of document.querySelectorAll("[data-unless]")) if (one.dataset.unless in values) one.hidden = Boolean(values[one.dataset.unless]);
};

// ---- Talking to the room ----

const path = verb => data.base + "/v1/rooms/" + data.room + "/" + verb;

const call = async (verb, method, headers = {}, sent) => {
  // Not answered within 15 seconds is not answered: phones keep dead sockets open for minutes.
  const patience = new AbortController(), timer = setTimeout(() => patience.abort(), 15e3);
  if (bearer && token && !headers.Authorization) headers.Authorization = "Bearer " + token;
  try {
    const response = await fetch(path(verb), { method: method || "GET", cache: "no-store", signal: patience.signal,
      headers: { "Waitroom-Request": "page", ...headers }, body: sent && JSON.stringify(sent) });
    const body = await response.json().catch(() => ({}));
    if (body.token) token = body.token;
    return { ok: response.ok, status: response.status, body };
  } finally { clearTimeout(timer); }
};

const LEFT = "left";
let timer = 0, failures = 0;
const later = ms => { clearTimeout(timer); timer = setTimeout(check, ms); };
// A live channel brings news by itself; then we ask only for what it does not bring.
const expected = () => !answer ? 5e3 : channel ? Math.max(3e4, answer.next_check_ms) : answer.next_check_ms;
// Longer each time and never at the same moment as others, so that a recovering server can breathe.
const backOff = least => later(Math.max(least || 0, Math.min(3e4, 1e3 * 2 ** failures++)) * (0.5 + Math.random()));

const check = async () => {
  clearTimeout(timer);
  if (entering) return;
  try {
    const { ok, body } = await call("status" + (seen ? "?version=" + seen : ""));
    if (ok) took(body); else refused(body);
  } catch {
    // Nobody answers at all, so nothing is said about which ways are open.
    carrier = 0;
    backOff();
    fresh();
  }
};

const join = async again => {
  let key = again ? null : stored("sessionStorage");
  // Who left stays out until they say otherwise; a reload is no such word.
  if (key === LEFT) return show("lost", "left");
  if (!key) {
    key = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(24))));
    stored("sessionStorage", key);
  }
  try {
    // One tab after the other: the second then has the first one's cookie, and gets the same place.
    const once = () => call("join", "POST", { "Idempotency-Key": key });
    const { ok, body } = await (navigator.locks ? navigator.locks.request("wr-" + data.room, once) : once());
    if (!ok) return refused(body);
    // Had this device a place that cannot be found any more, we say so.
    data.renewed = Boolean(!again && memory && memory.ticket !== body.ticket);
    took(body);
  } catch { backOff(); }
};

const took = it => {
  failures = 0;
  // An instance that is behind may answer; what was seen stays seen. But not for ever: a store that
  // lost its end has gone back, and its answers are the truth now.
  if (answer && it.ticket === answer.ticket && it.version < seen && Date.now() - heard < 3e4) return later(expected());
  answer = it;
  seen = it.version;
  heard = Date.now();
  note = it.reason || null;
  memory = remember(memory, it);
  if (it.status === "waiting") see(memory, it.position);
  const next = stateOf(it);
  if (next === "lost" || next === "ended") forget(); else keep();
  show(next, it.ended_because || it.status);
  if (next === "turn") return turn();
  if (next === "lost" || next === "ended") return hangUp();
  later(expected());
  listen();
};

const forget = () => { kept = ""; stored("localStorage", null); stored("sessionStorage", null); if (push) push.undo(); };

const tookBoard = board => {
  if (!answer || answer.status !== "waiting" || board.version < memory.since) return;
  heard = Date.now();
  seen = Math.max(seen, board.version);
  seeBoard(memory, answer, board);
  keep();
  if (board.phase !== "ended") { answer.room_status = board.phase; note = board.reason || null; }
  show(stateOf(answer));
};

const refused = problem => {
  const code = problem.code, detail = problem.detail;
  if (code === "token_missing" && token && !bearer) {
    // The cookie was cleared while this page was open. The page still holds the place, and a join
    // that shows it brings the cookie back.
    bearer = true;
    return join();
  }
  if (code === "token_missing" || code === "token_invalid") { bearer = false; token = null; return join(); }
  if (LOST[code]) { hangUp(); forget(); answer = null; return show("lost", code); }
  const shown = { not_open_yet: "not_open", queue_full: "full", maintenance: "maintenance", paused: "paused", room_ended: "ended" }[code];
  if (shown) {
    note = shown === "full" || shown === "not_open" ? null : detail;
    // A page that was made without the schedule finds the moment in what it is told.
    if (shown === "not_open" && !data.opens) data.opens = Date.parse((/\d{4}-\d\d-\d\dT[\d:.]+Z/.exec(detail) || [])[0]) || null;
    if (!answer || shown === "ended") show(shown);
    if (shown === "ended") { forget(); return hangUp(); }
    failures = Math.min(failures, 3);
    const opens = shown === "not_open" && data.opens ? data.opens - serverNow() : 0;
    return opens > 1e4 ? later(Math.min(opens + Math.random() * 2e3, 6e4)) : backOff(problem.retry_after_ms || 2e3);
  }
  // Too many at once, or a server in trouble: later. What cannot get better is said, and tried seldom.
  if (["room_unknown", "origin_refused", "challenge_required", "forbidden", "not_found"].includes(code) || failures > 5) {
    if (!answer) show("error");
  }
  backOff(problem.retry_after_ms);
};

// ---- Live: WebSocket, then server-sent events, then nothing but asking ----

let channel = null, opening = false, carrier = 0;

const hangUp = () => {
  clearTimeout(timer);
  if (channel) { const old = channel; channel = null; old.close(); }
};

const listen = async () => {
  if (channel || opening || carrier > 1) return;
  opening = true;
  try {
    const ticket = bearer ? (await call("live-ticket", "POST")).body.live_ticket : null;
    const query = ticket ? "?live_ticket=" + encodeURIComponent(ticket) : "";
    const socket = carrier === 0;
    const one = socket ? new WebSocket(location.origin.replace(/^http/, "ws") + path("live") + query)
      : new EventSource(path("stream") + query);
    let opened = false;
    const ended = () => {
      one.close();
      one.onclose = one.onerror = null;
      opening = false;
      if (channel === one) channel = null;
      // Never opened: this way is closed here (an old proxy, a policy); the next one may be open.
      if (!opened) { carrier++; return listen(); }
      if (answer && ["lost", "ended", "turn"].includes(state)) return;
      backOff();
    };
    one.onopen = () => { opened = true; opening = false; channel = one; later(expected()); };
    one.onerror = one.onclose = ended;
    const frame = event => {
      const letter = JSON.parse(event.data);
      if (letter.type === "board") tookBoard(letter.board);
      else if (letter.type === "ticket") took(letter);
      else ended();
    };
    if (socket) one.onmessage = frame;
    else for (const kind of ["ticket", "board", "bye"]) one.addEventListener(kind, frame);
  } catch { opening = false; carrier++; }
};
// A way that was closed may open again: the network changed, a proxy was replaced.
setInterval(() => { carrier = 0; }, 3e5);

// ---- One's turn ----

const turn = () => {
  hangUp();
  if (!rung) ring();
  if (!document.hidden || answer.status === "active") return enter();
  // Nobody looks. Wait for them, but not until it is too late.
  const left = Date.parse(answer.claim_by) - serverNow();
  setTimeout(enter, Math.max(0, left / 2));
};

const ring = () => {
  const on = armed;
  rung = true;
  if (!on || !document.hidden) return;
  try { new Notification(t("turn"), { body: data.title, requireInteraction: true }); } catch { /* phones want a worker */ }
  [0, 0.25, 0.5].forEach((at, i) => {
    const tone = on.createOscillator(), gain = on.createGain(), from = on.currentTime + at;
    tone.frequency.value = 523.25 * [1, 1.26, 1.5][i];
    gain.gain.setValueAtTime(0.2, from);
    gain.gain.exponentialRampToValueAtTime(0.001, from + 0.4);
    tone.connect(gain).connect(on.destination);
    tone.start(from);
    tone.stop(from + 0.4);
  });
};

const enter = async () => {
  if (entering || state !== "turn") return;
  entering = true;
  show("turn");
  try {
    const { ok, body } = await call("claim", "POST");
    if (ok && body.enter_url) {
      // To where the visitor was going, if a gate of this host takes the pass there; else where the room says.
      const url = new URL(data.to || body.enter_url, location.href);
      if (data.to) url.searchParams.set("wr_pass", body.pass);
      if (!/^https?:$/.test(url.protocol)) throw url;
      forget();
      return location.replace(url);
    }
    entering = false;
    if (body.code === "wrong_status") return check();
    refused(body);
  } catch { entering = false; show("turn"); setTimeout(enter, 2e3 + Math.random() * 2e3); }
};

// ---- What a visitor can do ----

const ask = (key, yes, no, act, link) => new Promise(done => {
  const box = $("ask");
  if (!box.showModal) return done(link ? prompt(t(act), link) && false : confirm(t(key) + " " + t(act)));
  text("ask_head", t(key));
  text("ask_note", t(act));
  text("yes", t(yes));
  text("no", t(no));
  $("link").hidden = !link;
  if (link) $("link").value = link;
  $("yes").onclick = () => link ? copy() : box.close("yes");
  $("no").onclick = () => box.close("");
  box.returnValue = "";
  box.onclose = () => done(box.returnValue === "yes");
  box.showModal();
});

const copy = async () => {
  $("link").select();
  // Browsers keep the clipboard from pages without TLS; the old way still works there.
  const done = navigator.clipboard && await navigator.clipboard.writeText($("link").value).then(() => true, () => false);
  if (done || document.execCommand("copy")) text("yes", t("copied"));
};

$("leave").onclick = async () => {
  if (!await ask("leave_ask", "leave_yes", "leave_no", "leave_note")) return;
  try {
    const { ok, body } = await call("leave", "POST");
    if (!ok) return refused(body);
    took(body);
    stored("sessionStorage", LEFT);
  } catch { fresh(); }
};

$("move").onclick = async () => {
  try {
    const { ok, body } = await call("heartbeat", "POST");
    if (ok) await ask("move", "copy", "close", "move_note", location.href.split("#")[0] + "#wr-move=" + body.token);
    else refused(body);
  } catch { fresh(); }
};

$("notify").onclick = async () => {
  armed = new (window.AudioContext || window.webkitAudioContext)();
  armed.resume();
  let may = "denied";
  try { may = await Notification.requestPermission(); } catch { /* none here */ }
  $("notify").hidden = true;
  $("notified").textContent = t(may === "granted" ? "notify_on" : "notify_sound");
};

// A message before one's turn, where the room offers it. What is asked for already, the room knows.
if ($("word")) {
  const box = $("wish"), to = $("to"), ways = $("ways"), yes = $("wish_yes");
  // [[push-page.js]]
  // One way is no choice, and none is no button.
  const all = ways.querySelectorAll("input"), by = () => ways.querySelector(":checked");
  ways.hidden = all.length < 2;
  $("word").hidden = !box.showModal || !all.length;
  if (all.length) all[0].checked = true;
  const chosen = () => {
    const { value, parentNode } = by(), pushes = value === "push";
    $("wish_note").hidden = to.hidden = to.disabled = $("to_label").hidden = pushes;
    $("push_note").hidden = !pushes;
    // What was wrong with one way is not wrong with another.
    $("wish_wrong").textContent = "";
    to.removeAttribute("aria-invalid");
    if (pushes) return;
    to.type = to.autocomplete = value === "sms" ? "tel" : "email";
    text("to_label", parentNode.textContent);
  };
  let wishes = 0, newest = 0, key = null, waits = false;
  // The status of the answer; 0 where none came. An earlier one that comes late changes nothing.
  const wish = async sent => {
    const mine = ++wishes;
    try {
      const { ok, status, body } = await call("notify", "POST", { "Content-Type": "application/json" }, sent);
      if (ok && mine > newest) {
        newest = mine;
        key = body.push_key;
        waits = body.notify === "waiting";
        $("wish_off").hidden = !waits;
        $("worded").textContent = waits ? t("word_on") : "";
      }
      return status;
    } catch { return 0; }
  };
  const asked = async sent => {
    const pushes = sent.channel === "push";
    let status = 0, why = "error_note";
    yes.disabled = true;
    try {
      if (pushes) sent.subscription = await push.ask(async () => key || (await wish({}), key));
      status = await wish(sent);
    } catch (said) { why = said; }
    const ok = status === 200, wrong = status === 400;
    if (wrong) why = pushes ? "word_push_failed" : "word_wrong";
    // What the room does not push to is no longer open to be pushed to.
    if (push && (ok ? !(pushes && waits) : pushes && (wrong || status && push.made))) push.undo();
    yes.disabled = false;
    to.setAttribute("aria-invalid", wrong && !pushes);
    $("wish_wrong").textContent = ok ? "" : t(why);
    if (!ok) return (to.disabled ? yes : to).focus();
    to.value = "";
    box.close();
  };
  ways.onchange = chosen;
  $("word").onclick = () => {
    chosen();
    box.showModal();
    (to.disabled ? ways.hidden ? yes : by() : to).focus();
    wish({});
  };
  $("wish_no").onclick = () => box.close();
  $("wish_off").onclick = () => asked({ channel: "none" });
  $("wish_form").onsubmit = event => {
    event.preventDefault();
    const way = by().value;
    asked(way === "push" ? { channel: way } : { channel: way, address: way === "sms" ? phone(to.value) : to.value.trim() });
  };
}

$("again").onclick = () => {
  if (state === "error") return location.reload();
  answer = null; memory = null; seen = 0; note = null; failures = 0; carrier = 0; rung = false;
  show("finding");
  join(true);
};
$("go").onclick = enter;

// ---- Beginning ----

const awake = () => {
  if (document.hidden) return;
  if (state === "turn") return enter();
  if (!["lost", "ended"].includes(state) && Date.now() - heard > 2e3) { failures = 0; check(); }
};
document.addEventListener("visibilitychange", awake);
addEventListener("online", () => { carrier = 0; awake(); });
addEventListener("offline", fresh);
addEventListener("pageshow", event => { if (event.persisted) { entering = false; check(); } });
setInterval(() => {
  if (["before", "not_open", "turn"].includes(state) && until() && !entering) text("number", clock(until() - serverNow()));
  fresh();
}, 1e3);

const begin = async () => {
  const moved = /^#wr-move=(.+)/.exec(location.hash);
  if (moved) {
    // The secret leaves the address line before anything else happens.
    history.replaceState(null, "", location.href.split("#")[0]);
    if (await ask("move_here", "move_yes", "move_no", "move_here_note")) {
      try {
        const { ok, body } = await call("hand-over", "POST", { Authorization: "Bearer " + moved[1] });
        if (ok) { answer = memory = null; seen = 0; return took(body); }
        return refused(body);
      } catch { /* as if it had not been asked */ }
    }
  }
  if (data.answer) took(data.answer);
  else check();
};
if (data.still) {
  // A page that is final, or a preview: shown as it is, nobody is asked.
  note = data.reason;
  if (data.answer) {
    answer = data.answer;
    memory = remember(memory, answer);
    heard = Date.now();
    note = answer.reason || null;
    see(memory, answer.position);
  }
  show(state, data.because);
} else begin();
})();
