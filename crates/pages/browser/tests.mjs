// What a waiting page promises, in Chromium against the real server. Run by tests/browser.rs; by hand:
// RENDER_PAGE=target/debug/render-page WAITROOM_BIN=target/debug/waitroom node crates/pages/browser/tests.mjs [WORDS]
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { complaints, openBrowser, openPersistent, openRenderer } from "./parts.mjs";
import { pushTests } from "./push.mjs";
import { openSite } from "./site.mjs";

const only = process.argv[2];
const browser = await openBrowser(), renderer = openRenderer(), site = await openSite(renderer);
const tests = [];
const test = (name, run) => tests.push({ name, run });

// A browser of somebody's own. Its mistakes are ours: a script error or a refused script fails the test.
const someone = async (options = {}) => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, locale: "en", ...options });
  return watched(context);
};
const watched = context => {
  context.setDefaultTimeout(20000);
  context.wrong = [];
  context.on("page", page => {
    page.on("pageerror", error => context.wrong.push(String(error)));
    page.on("console", line => { if (/Content Security Policy|Refused to/.test(line.text())) context.wrong.push(line.text()); });
  });
  return context;
};
const opened = async (context, path) => {
  const page = await context.newPage();
  await page.goto(site.url + path);
  return page;
};
const text = (page, id) => page.locator(`#${id}`).innerText();
// Waits for a condition; says what was there instead when it does not come.
const soon = async (what, look, wanted) => {
  const until = Date.now() + 20000;
  let found;
  for (;;) {
    found = await look().catch(error => error);
    if (typeof wanted === "function" ? wanted(found) : found === wanted) return found;
    if (Date.now() > until) throw new Error(`${what}: wanted ${wanted}, found ${found}`);
    await new Promise(done => setTimeout(done, 30));
  }
};
// What the server says to the holder of this browser's cookies.
const asked = async (context, room) => {
  const cookie = (await context.cookies()).map(it => `${it.name}=${it.value}`).join("; ");
  return (await site.visitor(room, "status", "GET", { cookie })).body;
};
const place = (page, wanted) => soon("place", () => text(page, "number"), String(wanted));
// A page says it as soon as its script has run.
const says = (page, id, wanted) => soon(id, () => text(page, id), wanted);
const head = (page, wanted) => soon("headline", () => text(page, "head"), wanted);

test("a visitor waits, moves up, is admitted and buys where they wanted to go", async context => {
  await site.room("buys");
  await site.crowd("buys", 3);
  const page = await opened(context, "/buys/seats?row=5");
  await place(page, 4);
  await says(page, "sub", "3 people ahead of you");
  assert.match(await page.title(), /^4 · Autumn Lights Festival$/);
  await site.operate("POST", "buys/admit", { count: 2 });
  await place(page, 2);
  await says(page, "done", "50% of the way since you joined");
  await site.operate("POST", "buys/admit", { count: 1 });
  await place(page, 1);
  await says(page, "sub", "You are next");
  await site.operate("POST", "buys/admit", { count: 1 });
  await page.waitForSelector("text=Bought");
  await says(page, "where", "/buys/seats?row=5");
});

test("a reload, a second tab and a browser that was closed keep the place", async () => {
  await site.room("keeps");
  await site.crowd("keeps", 2);
  const folder = mkdtempSync(join(tmpdir(), "waitroom-profile-"));
  let context = watched(await openPersistent(folder));
  const page = await opened(context, "/keeps/");
  await place(page, 3);
  const code = await text(page, "code");
  await page.reload();
  await place(page, 3);
  await says(page, "code", code);
  const second = await opened(context, "/keeps/other");
  await place(second, 3);
  await says(second, "code", code);
  await context.close();
  await site.operate("POST", "keeps/admit", { count: 1 });
  context = watched(await openPersistent(folder));
  const again = await opened(context, "/keeps/");
  await place(again, 2);
  await says(again, "code", code);
  // Progress since joining outlives the browser, too.
  await says(again, "done", "33% of the way since you joined");
  assert.deepEqual(context.wrong, []);
  await context.close();
  rmSync(folder, { recursive: true, force: true });
});

test("two tabs that open at the same moment get one place", async context => {
  await site.room("tabs");
  const pages = await Promise.all([1, 2, 3].map(() => opened(context, "/tabs/")));
  for (const page of pages) await place(page, 1);
  const codes = await Promise.all(pages.map(page => text(page, "code")));
  assert.equal(new Set(codes).size, 1, String(codes));
  const { lanes } = (await site.visitor("tabs", "board")).body;
  assert.equal(lanes[0].waiting, 1);
});

test("who is offline for a while is told so and comes back to the same place", async context => {
  await site.room("tunnel");
  await site.crowd("tunnel", 2);
  const page = await opened(context, "/tunnel/");
  await place(page, 3);
  const code = await text(page, "code");
  await context.setOffline(true);
  await soon("warning", () => text(page, "fresh"), it => /^You are offline\. Your place is kept/.test(it));
  await says(page, "number", "3");
  await site.operate("POST", "tunnel/admit", { count: 1 });
  await context.setOffline(false);
  await place(page, 2);
  await soon("freshness", () => text(page, "fresh"), it => /^Updated/.test(it));
  await says(page, "code", code);
});

test("a server that is killed and comes back finds everybody where they stood", async context => {
  await site.room("crash");
  await site.crowd("crash", 2);
  const page = await opened(context, "/crash/");
  await place(page, 3);
  await site.kill();
  await site.start();
  await site.operate("POST", "crash/admit", { count: 1 });
  await place(page, 2);
});

test("without script the page joins, shows the place and lets in", async () => {
  await site.room("plain");
  await site.crowd("plain", 1);
  const context = await someone({ javaScriptEnabled: false });
  const page = await opened(context, "/plain/seats");
  await place(page, 2);
  await says(page, "sub", "1 person ahead of you");
  await site.operate("POST", "plain/admit", { count: 1 });
  await place(page, 1);
  await site.operate("POST", "plain/admit", { count: 1 });
  await page.waitForSelector("text=Bought");
  await says(page, "where", "/plain/seats");
  await context.close();
});

test("a cookie that is cleared while the page is open costs nothing", async context => {
  await site.room("cleared");
  await site.crowd("cleared", 2);
  const page = await opened(context, "/cleared/");
  await place(page, 3);
  const code = await text(page, "code");
  await context.clearCookies();
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
  await soon("the cookie is back", async () => (await context.cookies()).length, 1);
  await says(page, "code", code);
  // Cleared and reloaded at once: the attempt's key still finds the place.
  await context.clearCookies();
  await page.reload();
  await place(page, 3);
  await says(page, "code", code);
});

test("a device that forgot everything gets a new place and is told so where it can be known", async context => {
  await site.room("forgot");
  const page = await opened(context, "/forgot/");
  await place(page, 1);
  await context.clearCookies();
  await page.evaluate(() => sessionStorage.clear());
  await page.reload();
  await place(page, 2);
  assert.match(await text(page, "lead"), /earlier place could not be found/);
});

test("a link moves the place to a second browser, and the first says so", async context => {
  await site.room("moves");
  await site.crowd("moves", 2);
  const page = await opened(context, "/moves/");
  await place(page, 3);
  const code = await text(page, "code");
  await page.click("#move");
  // The page may have to ask for its token first.
  await page.waitForFunction(() => document.getElementById("link").value !== "");
  const link = await page.inputValue("#link");
  assert.match(link, /#wr-move=wt1_/);
  const other = await someone();
  const there = await other.newPage();
  await there.goto(link);
  await says(there, "ask_head", "Move the place to this device?");
  assert.ok(!there.url().includes("wt1_"), "the secret left the address line");
  await there.click("#yes");
  await place(there, 3);
  await says(there, "code", code);
  await page.click("#no");
  await page.reload();
  await head(page, "You no longer have a place");
  await says(page, "lead", "Another device holds your place now.");
  assert.deepEqual(other.wrong, []);
  await other.close();
});

test("a link of somebody else's takes no place away unless one agrees", async context => {
  await site.room("swap");
  const [far] = await site.crowd("swap", 1);
  const page = await opened(context, "/swap/");
  await place(page, 2);
  const code = await text(page, "code");
  await page.goto(`${site.url}/swap/x#wr-move=${far.token}`);
  await page.click("#no");
  await place(page, 2);
  await says(page, "code", code);
});

test("leaving asks first, then gives the place up; lining up again gets a new one", async context => {
  await site.room("leaves");
  const page = await opened(context, "/leaves/");
  await place(page, 1);
  await page.click("#leave");
  await says(page, "ask_head", "Give up your place?");
  await page.keyboard.press("Escape");
  await place(page, 1);
  await page.click("#leave");
  await page.click("#yes");
  await head(page, "You no longer have a place");
  await says(page, "lead", "You left the line.");
  await page.reload();
  await head(page, "You no longer have a place");
  await page.click("#again");
  await place(page, 1);
});

for (const [name, ways] of [["events", ["live"]], ["asking", ["live", "stream"]]]) {
  test(`where ${ways.join(" and ")} is closed the page still hears`, async context => {
    await site.room(name, { heartbeat_timeout: "15s" });
    await site.crowd(name, 2);
    ways.forEach(way => site.blocked.add(way));
    const asked = [];
    context.on("request", request => asked.push(new URL(request.url()).pathname.split("/").pop()));
    const page = await opened(context, `/${name}/`);
    await place(page, 3);
    await site.operate("POST", `${name}/admit`, { count: 1 });
    await place(page, 2);
    assert.ok(asked.includes("stream"), "the next way was tried");
    site.blocked.clear();
  });
}

test("a pause shows its reason as text, and the line goes on after it", async context => {
  await site.room("pause");
  await site.crowd("pause", 1);
  const page = await opened(context, "/pause/");
  await place(page, 2);
  const reason = "Payments are down. <img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script>";
  await site.operate("POST", "pause/pause", { reason });
  await head(page, "The line is paused");
  await says(page, "notice", `Message from the organiser\n${reason}`);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await site.operate("POST", "pause/resume");
  await head(page, "You are in line");
  assert.equal(await page.locator("#notice").isVisible(), false);
});

test("when it is sold out those who wait are told at once, and those who come later too", async context => {
  await site.room("sold");
  const page = await opened(context, "/sold/");
  await place(page, 1);
  await site.operate("POST", "sold/finish", { reason: "sold out" });
  await head(page, "Sold out");
  const late = await opened(await someone(), "/sold/");
  await head(late, "Sold out");
  await late.context().close();
});

test("before the start there is a countdown and a word about the draw; then comes the place", async context => {
  const starts = Date.now() + 6000;
  await site.room("draw", { starts_at: new Date(starts).toISOString(), draw: true }, { starts_at_ms: starts, draw: "committed" });
  const page = await opened(context, "/draw/");
  await head(page, "It has not started yet");
  assert.match(await text(page, "lead"), /takes part in a draw\. Coming earlier is no advantage\. The operator fixed/);
  assert.match(await text(page, "number"), /^0:0\d$/);
  await place(page, 1);
  await head(page, "You are in line");
});

test("before the doors open the page counts down and then gets a place by itself", async context => {
  await site.room("doors", { opens_at: new Date(Date.now() + 5000).toISOString() });
  const page = await opened(context, "/doors/");
  await head(page, "The doors are not open yet");
  assert.match(await text(page, "number"), /^0:0\d$/);
  await place(page, 1);
});

test("a full line says so and lets the next one in by itself", async context => {
  await site.room("full", { max_waiting: 1 });
  await site.crowd("full", 1);
  const page = await opened(context, "/full/");
  await head(page, "The line is full");
  await site.operate("POST", "full/admit", { count: 1 });
  await place(page, 1);
});

test("maintenance keeps every place and says what is done", async context => {
  await site.room("works");
  await site.crowd("works", 1);
  const page = await opened(context, "/works/");
  await place(page, 2);
  await site.operate("POST", "works/maintenance", { reason: "New seats are put in." });
  await head(page, "Back soon");
  await says(page, "number", "2");
  assert.match(await text(page, "notice"), /New seats are put in\.$/);
  await site.operate("POST", "works/resume");
  await head(page, "You are in line");
});

test("who asks for a message before their turn gets it, and can take the wish back", async context => {
  await site.room("word", {}, { notices: ["email", "sms"] });
  await site.crowd("word", 3);
  const page = await opened(context, "/word/");
  await place(page, 4);
  const wish = async () => {
    const cookie = (await context.cookies()).map(it => `${it.name}=${it.value}`).join("; ");
    return (await site.visitor("word", "notify", "POST", { cookie, "waitroom-request": "page" })).body.notify;
  };
  const before = await page.locator("#ticket").boundingBox();
  await page.click("#word");
  assert.deepEqual(await page.locator("#ways label").allInnerTexts(), ["E-mail address", "Mobile number with country code"]);
  assert.equal(await page.evaluate(() => document.activeElement.id), "to", "it can be written at once");
  assert.deepEqual(await complaints(page), []);
  // What is no address is said, and nothing is kept.
  await page.check("#ways [value=sms]");
  await says(page, "to_label", "Mobile number with country code");
  await page.fill("#to", "12");
  await page.keyboard.press("Enter");
  await says(page, "wish_wrong", "This did not work. Please check what you entered.");
  assert.equal(await wish(), null);
  await page.check("#ways [value=email]");
  await page.fill("#to", "ana@shop.example.org");
  await page.click("#wish_yes");
  await says(page, "worded", "You will get a message when your turn is near. Come back to this page then.");
  assert.equal(await wish(), "waiting");
  assert.deepEqual(await page.locator("#ticket").boundingBox(), before, "nothing moved");
  // Taken back, also after a reload, which knows nothing of it.
  await page.reload();
  await place(page, 4);
  await page.click("#word");
  await page.locator("#wish_off").waitFor({ state: "visible" });
  await page.click("#wish_off");
  await soon("the wish is gone", wish, null);
  // And the other way: the message comes when one more has gone in.
  await page.click("#word");
  await page.check("#ways [value=sms]");
  await page.fill("#to", "+49 151 12345678");
  await page.click("#wish_yes");
  await soon("the wish arrives", wish, "waiting");
  assert.deepEqual(site.texts, [], "nobody is near yet");
  await site.operate("POST", "word/admit", { count: 2 });
  await soon("the message", async () => site.texts.length, 1);
  assert.equal(site.texts[0].to, "+4915112345678");
  await page.goto("about:blank");
  // A room that offers nothing asks for nothing.
  await site.room("wordless");
  const other = await opened(context, "/wordless/");
  await place(other, 1);
  assert.equal(await other.locator("#word, #wish").count(), 0);
});

test("the form for a message closes as one wants it, and says what went wrong", async context => {
  await site.room("form", {}, { notices: ["email", "sms"] });
  await site.crowd("form", 3);
  const page = await opened(context, "/form/");
  await place(page, 4);
  const form = page.locator("#wish"), focus = () => page.evaluate(() => document.activeElement.id);
  const invalid = () => page.locator("#to").getAttribute("aria-invalid");
  const closed = async () => {
    await form.waitFor({ state: "hidden" });
    assert.equal(await focus(), "word", "whoever closed it is where they were");
    assert.equal(await text(page, "worded"), "", "nothing was asked for");
  };
  const open = async () => {
    await page.click("#word");
    await form.waitFor({ state: "visible" });
    assert.equal(await text(page, "wish_wrong"), "", "nothing is wrong yet");
    assert.notEqual(await invalid(), "true");
  };
  await open();
  await page.keyboard.press("Escape");
  await closed();
  await open();
  await page.fill("#to", "ana@shop.example.org");
  await page.click("#wish_no");
  await closed();
  // What somebody wrote and what is wrong with it; another time nothing of that is left.
  await open();
  await page.check("#ways [value=sms]");
  await page.fill("#to", "12");
  await page.click("#wish_yes");
  await says(page, "wish_wrong", "This did not work. Please check what you entered.");
  assert.deepEqual([await invalid(), await focus()], ["true", "to"]);
  assert.deepEqual(await complaints(page), []);
  await page.keyboard.press("Escape");
  await closed();
  // Not the visitor's fault: said so, the form stays with what they wrote, and can be sent again.
  await open();
  await page.check("#ways [value=email]");
  const fails = [route => route.fulfill({ status: 503, contentType: "application/json", body: "{}" }), route => route.abort()];
  for (const fail of fails) {
    await page.fill("#to", "ana@shop.example.org");
    await page.route("**/notify", fail);
    await page.click("#wish_yes");
    await says(page, "wish_wrong", "It is not your fault. Please try again in a moment.");
    assert.deepEqual([await invalid(), await focus()], ["false", "to"]);
    assert.equal(await page.inputValue("#to"), "ana@shop.example.org");
    assert.equal(await page.locator("#wish_yes").isEnabled(), true);
    await page.unroute("**/notify");
    // The next failure must say it again, and not merely still.
    await page.locator("#wish_wrong").evaluate(it => { it.textContent = ""; });
  }
  await page.click("#wish_yes");
  await form.waitFor({ state: "hidden" });
  await says(page, "worded", "You will get a message when your turn is near. Come back to this page then.");
  assert.equal(await page.inputValue("#to"), "", "the address stays nowhere");
});

pushTests({ test, site, someone, opened, text, soon, place, says });

test("a place that an operator ended says so", async context => {
  await site.room("ends");
  const page = await opened(context, "/ends/");
  await place(page, 1);
  const { ticket } = await asked(context, "ends");
  await site.operate("POST", `ends/tickets/${ticket}/revoke`);
  await head(page, "You no longer have a place");
  await says(page, "lead", "The organiser ended your place.");
});

test("a page that nobody looks at rings, and goes in when somebody looks", async context => {
  await site.room("rings", { claim: "explicit", claim_within: "60s" });
  await context.grantPermissions(["notifications"]);
  await context.addInitScript(() => {
    window.rung = [];
    window.Notification = class { constructor(title, more) { window.rung.push([title, more.body]); } static requestPermission() { return Promise.resolve("granted"); } };
  });
  const page = await opened(context, "/rings/");
  await place(page, 1);
  await page.click("#notify");
  assert.match(await text(page, "notified"), /A sound and a message will tell you/);
  const hide = hidden => page.evaluate(it => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => it });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await hide(true);
  await site.operate("POST", "rings/admit", { count: 1 });
  await head(page, "It is your turn");
  assert.deepEqual(await page.evaluate(() => window.rung), [["It is your turn", "Autumn Lights Festival"]]);
  assert.equal(await page.title(), "● It is your turn");
  assert.match(await text(page, "number"), /^(1:00|0:5\d)$/);
  await hide(false);
  await page.waitForSelector("text=Bought");
});

test("a turn that nobody takes says why it is gone", async context => {
  await site.room("late", { claim: "explicit", claim_within: "5s" });
  await context.addInitScript(() => Object.defineProperty(document, "hidden", { get: () => true }));
  await context.route("**/claim", route => route.abort());
  const page = await opened(context, "/late/");
  await place(page, 1);
  await site.operate("POST", "late/admit", { count: 1 });
  await head(page, "It is your turn");
  await soon("the turn is over", async () => (await asked(context, "late")).status, "expired");
  await page.reload();
  await head(page, "You no longer have a place");
  await says(page, "lead", "Your turn came, but nobody came in before the time ran out.");
});

test("a crowd of fifteen hundred: the position comes off the board and never rises", async context => {
  await site.room("crowd", { max_active: 100000 });
  for (let i = 0; i < 1500; i += 50) await Promise.all(Array.from({ length: 50 }, () => site.crowd("crowd", 1)));
  const page = await opened(context, "/crowd/");
  // Beyond the first thousand the board tells it within one in a hundred.
  await page.waitForFunction(() => Math.abs(Number(document.getElementById("number")?.textContent.replace(/\D/g, "")) - 1501) <= 15);
  await page.evaluate(() => {
    window.seen = [];
    new MutationObserver(() => window.seen.push(Number(document.getElementById("number").textContent.replace(",", ""))))
      .observe(document.getElementById("number"), { childList: true, characterData: true, subtree: true });
  });
  for (let i = 0; i < 14; i++) await site.operate("POST", "crowd/admit", { count: 100 });
  await place(page, 101);
  const seen = await page.evaluate(() => window.seen);
  assert.ok(seen.every((n, i) => i === 0 || n <= seen[i - 1]), String(seen));
});

test("texts of operators and shops run nowhere, whatever they say", async context => {
  const nasty = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'><svg onload=window.pwned=1>{{title}}";
  await site.room("nasty", {}, { title: nasty, message: nasty, template: "<p>{{title}} {{message}}</p>{{> waiting}}<p>{{{title}}}</p>",
    theme: { logo: { url: "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0iYWxlcnQoMSkiLz4=", alt: nasty }, texts: { en: { in_line: nasty.replace(/[{}]/g, "") } } } });
  await context.addInitScript(() => addEventListener("securitypolicyviolation", event => (window.refused ||= []).push(event.violatedDirective)));
  const page = await opened(context, "/nasty/");
  await place(page, 1);
  await says(page, "head", nasty.replace(/[{}]/g, ""));
  assert.equal(await page.evaluate(() => [window.pwned, window.refused].join()), ",");
  assert.equal(await page.title(), `1 · ${nasty}`);
});

test("a template's variables follow the wait", async context => {
  await site.room("own", {}, { template: "{{#paused}}<p>It stands still.</p>{{/paused}}{{> waiting}}<p class=\"t-small\">You have {{ahead}} before you.</p>" });
  await site.crowd("own", 2);
  const page = await opened(context, "/own/");
  await place(page, 3);
  await site.operate("POST", "own/admit", { count: 1 });
  await soon("the template's line", () => page.locator(".t-small").innerText(), "You have 1 before you.");
});

test("the first view and the script say the same in every state", async () => {
  const states = ["finding", "waiting", "next", "long", "unknown", "paused", "maintenance", "before", "draw", "drawing", "not_open", "turn",
    "ended", "sold_out", "lost", "lost_no_show", "left", "moved", "full", "error"];
  const views = [];
  let html = null;
  for (const javaScriptEnabled of [false, true]) {
    const context = await someone({ javaScriptEnabled });
    await context.route("**/*", route => route.fulfill({ body: html, contentType: "text/html; charset=utf-8" }));
    views.push(await context.newPage());
  }
  for (const [language, some] of [["en", states], ["ru", ["waiting", "next", "paused"]], ["ar", ["waiting", "long", "lost", "draw"]]]) {
    for (const state of some) {
      html = (await renderer.render({ state, accept_language: language, now_ms: Date.now(), draw: state === "draw" ? "verifiable" : undefined, message: "A word." })).html;
      const said = [];
      for (const page of views) {
        await page.goto("http://waitroom.example/");
        // Only a script can count down.
        const counted = ["before", "draw", "not_open", "turn"].includes(state) ? ["label", "number", "sub"] : [];
        const ids = ["head", "lead", "notice", "label", "number", "sub", "wait", "wait_note", "code", "fresh", "keep"].filter(id => !counted.includes(id));
        const parts = await page.evaluate(ids => Object.fromEntries(ids.map(id => {
          const part = document.getElementById(id);
          return [id, part.checkVisibility() ? part.innerText : null];
        })), ids);
        parts.tab = state === "turn" ? null : await page.title();
        parts.fresh = parts.fresh && true;
        said.push(parts);
      }
      assert.deepEqual(said[1], said[0], `${state} ${language}`);
    }
  }
  for (const page of views) await page.context().close();
});

test("axe finds nothing on any page: light, dark, right-to-left, phone", async () => {
  const states = ["finding", "waiting", "next", "long", "unknown", "paused", "maintenance", "before", "draw", "drawing", "not_open", "turn",
    "ended", "sold_out", "lost", "full", "error", "privacy"];
  const context = await browser.newContext();
  let html = null;
  await context.route("**/*", route => route.fulfill({ body: html.html, contentType: "text/html; charset=utf-8",
    headers: { "Content-Security-Policy": html.content_security_policy } }));
  const page = await context.newPage();
  let count = 0;
  for (const { colorScheme, language, viewport, themed } of [
    { colorScheme: "light", language: "en" }, { colorScheme: "dark", language: "en" }, { colorScheme: "light", language: "ar", viewport: { width: 360, height: 740 } },
    { colorScheme: "dark", language: "de", viewport: { width: 320, height: 600 }, themed: true }]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize(viewport || { width: 1280, height: 800 });
    for (const state of states) {
      html = await renderer.render({ state, accept_language: language, now_ms: Date.now(), refresh_s: 10, privacy_url: "/privacy", message: "Row 12 is gone.",
        theme: themed ? { accent: "#7a1f3d", paper: "#fbf3f5" } : undefined });
      await page.goto("http://waitroom.example/");
      const found = await complaints(page);
      assert.deepEqual(found, [], `${state} ${colorScheme} ${language}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${state} ${language} is ${wide} px wider than the screen`);
      count++;
    }
    // The dialog, too.
    html = await renderer.render({ state: "waiting", accept_language: language, now_ms: Date.now() });
    await page.goto("http://waitroom.example/");
    await page.click("#leave");
    assert.deepEqual(await complaints(page), [], `dialog ${colorScheme} ${language}`);
  }
  console.log(`  ${count} pages`);
  await context.close();
});

test("the first view on a slow phone is readable within a second", async context => {
  await site.room("slow");
  await site.crowd("slow", 1);
  const page = await context.newPage();
  const tools = await context.newCDPSession(page);
  await tools.send("Network.enable");
  // A weak mobile link (150 ms there and back, 1.6 Mbit/s) and a processor four times slower than this one.
  await tools.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 200000, uploadThroughput: 93750 });
  await tools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  const views = [];
  for (let i = 0; i < 3; i++) {
    await page.goto(`${site.url}/slow/`, { waitUntil: "load" });
    views.push(await page.evaluate(() => new Promise(tell => new PerformanceObserver(list => {
      const first = list.getEntriesByName("first-contentful-paint")[0];
      if (first) tell(Math.round(first.startTime));
    }).observe({ type: "paint", buffered: true }))));
  }
  views.sort((one, two) => one - two);
  console.log(`  first view after ${views.join(", ")} ms`);
  // The best of three: what else this machine does is not the page's doing.
  assert.ok(views[0] < 1000, `the first view came after ${views} ms`);
});

test("a screen reader hears of the place without being talked to all the time", async context => {
  await site.room("reader");
  await site.crowd("reader", 20);
  const page = await opened(context, "/reader/");
  await place(page, 21);
  await page.evaluate(() => {
    window.heard = [];
    new MutationObserver(() => window.heard.push(document.getElementById("say").textContent)).observe(document.getElementById("say"), { childList: true });
  });
  for (let i = 0; i < 10; i++) await site.operate("POST", "reader/admit", { count: 1 });
  await place(page, 11);
  assert.deepEqual(await page.evaluate(() => window.heard), [], "moving up is not announced each time");
  await site.operate("POST", "reader/pause", { reason: "A short break." });
  await head(page, "The line is paused");
  assert.deepEqual(await page.evaluate(() => window.heard), ["The line is paused. 10 people ahead of you"]);
});

let failed = 0;
for (const { name, run } of tests.filter(({ name }) => !only || name.includes(only))) {
  const began = Date.now(), context = await someone();
  try {
    await run(context);
    assert.deepEqual(context.wrong, []);
    console.log(`ok ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}\n  ${error.stack || error}`);
    for (const page of context.pages()) console.log(`  page: ${(await page.locator("body").innerText().catch(String)).replace(/\s+/g, " ").slice(0, 400)}`);
  }
  site.blocked.clear();
  await context.close();
}
await browser.close();
renderer.close();
await site.close();
console.log(failed ? `${failed} failed` : "all passed");
process.exit(failed ? 1 : 0);
