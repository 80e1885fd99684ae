// What a page promises whose room pushes: the real page, worker, server and sealing, in Chromium.
//
// A browser without a push service of its vendor cannot subscribe. So `PushManager.subscribe` alone is
// ours: it gives keys that a browser of the test really has, and an endpoint on loopback. What the
// server seals for it is opened here and handed to the worker as the vendor's service would.
import assert from "node:assert/strict";
import { createDecipheriv, createECDH, createHmac, randomBytes } from "node:crypto";
import { complaints } from "./parts.mjs";

const hmac = (key, ...parts) => parts.reduce((mac, part) => mac.update(part), createHmac("sha256", key)).digest();

// A browser as a push service knows it, and what only it can do: open what was sealed for it (RFC 8291).
const receiver = endpoint => {
  const pair = createECDH("prime256v1"), auth = randomBytes(16), ours = pair.generateKeys();
  const open = sealed => {
    const [salt, theirs, body] = [sealed.subarray(0, 16), sealed.subarray(21, 86), sealed.subarray(86)];
    const input = hmac(hmac(auth, pair.computeSecret(theirs)), "WebPush: info\0", ours, theirs, "\x01"), key = hmac(salt, input);
    const of = name => hmac(key, `Content-Encoding: ${name}\0\x01`);
    const cipher = createDecipheriv("aes-128-gcm", of("aes128gcm").subarray(0, 16), of("nonce").subarray(0, 12));
    cipher.setAuthTag(body.subarray(-16));
    const plain = Buffer.concat([cipher.update(body.subarray(0, -16)), cipher.final()]);
    return JSON.parse(plain.subarray(0, plain.lastIndexOf(2)).toString());
  };
  const subscription = { endpoint, expirationTime: null, keys: { p256dh: ours.toString("base64url"), auth: auth.toString("base64url") } };
  return { subscription, open };
};

export const pushTests = ({ test, site, someone, opened, text, soon, place, says }) => {
  // A browser that may notify and whose vendor gives it this subscription.
  const subscribes = async (context, subscription) => {
    await context.grantPermissions(["notifications"], { origin: site.url });
    await context.addInitScript(given => {
      window.subscribed = [];
      PushManager.prototype.subscribe = async options => {
        window.subscribed.push(options);
        return { toJSON: () => given, unsubscribe: async () => true };
      };
    }, subscription);
  };
  const offered = page => page.locator("#ways input").evaluateAll(all => all.map(it => it.value));
  const workers = page => page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).map(it => it.scope));
  const wish = async (context, room) => {
    const cookie = (await context.cookies()).map(it => `${it.name}=${it.value}`).join("; ");
    return (await site.visitor(room, "notify", "POST", { cookie, "waitroom-request": "page" })).body.notify;
  };
  const open = async page => {
    await page.click("#word");
    await page.locator("#wish").waitFor({ state: "visible" });
  };
  // Hands a message to the worker of a room as the browser does when one comes.
  const delivers = async (context, page, room, message) => {
    const tools = await context.newCDPSession(page), known = new Map();
    tools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => registrations.forEach(it => known.set(it.scopeURL, it)));
    await tools.send("ServiceWorker.enable");
    const scope = `${site.url}/.waitroom/push/${room}/`;
    const { registrationId } = await soon("the worker", async () => known.get(scope), it => it && !it.isDeleted);
    await tools.send("ServiceWorker.deliverPushMessage", { origin: site.url, registrationId, data: message });
    await tools.detach();
  };
  const notifications = (page, room) => page.evaluate(async scope => {
    const one = await navigator.serviceWorker.getRegistration(scope);
    const all = one ? await one.getNotifications() : [];
    return all.map(({ title, body, tag, lang, dir, data }) => ({ title, body, tag, lang, dir, data }));
  }, `/.waitroom/push/${room}/`);

  test("who asks for a notification gets it from the worker, and it leads back to the page", async context => {
    const { subscription, open: opens } = receiver(`${site.pushes.url}/p/ana`);
    await subscribes(context, subscription);
    await site.room("push", { title: "Autumn Lights Festival" }, { notices: ["email", "sms", "push"] });
    await site.crowd("push", 3);
    const page = await opened(context, "/push/seats?row=5");
    await place(page, 4);
    await open(page);
    assert.deepEqual(await offered(page), ["push", "email", "sms"], "what needs no address comes first");
    assert.deepEqual([await page.locator("#to").isVisible(), await page.locator("#to_label").isVisible()], [false, false]);
    assert.match(await text(page, "push_note"), /^You get one notification\. Your browser first asks/);
    assert.equal(await page.evaluate(() => document.activeElement.value), "push", "and is where the keyboard is");
    assert.deepEqual(await complaints(page), []);
    // The other ways are still there, and this one again.
    await page.check("#ways [value=email]");
    assert.deepEqual([await page.locator("#to").isVisible(), await page.locator("#push_note").isVisible()], [true, false]);
    await says(page, "to_label", "E-mail address");
    await page.check("#ways [value=push]");
    assert.deepEqual(await workers(page), [], "nothing before somebody wants it");
    const sent = page.waitForRequest(ask => ask.url().endsWith("/notify") && Boolean(ask.postDataJSON()?.channel));
    await page.click("#wish_yes");
    assert.deepEqual((await sent).postDataJSON(), { channel: "push", subscription });
    await says(page, "worded", "You will get a message when your turn is near. Come back to this page then.");
    await page.locator("#wish").waitFor({ state: "hidden" });
    assert.equal(await wish(context, "push"), "waiting");
    const { push_key } = await page.evaluate(async () => (await fetch("/.waitroom/v1/rooms/push/notify", { method: "POST", headers: { "Waitroom-Request": "page" } })).json());
    assert.deepEqual(await page.evaluate(() => window.subscribed), [{ userVisibleOnly: true, applicationServerKey: push_key }]);
    // A worker for this room alone: no page of the site is in its hands, after a reload neither.
    assert.deepEqual(await workers(page), [`${site.url}/.waitroom/push/push/`]);
    await page.reload();
    await place(page, 4);
    assert.equal(await page.evaluate(() => navigator.serviceWorker.controller), null);

    // The turn comes near: sealed by the server, opened by the browser, shown by the worker.
    assert.equal(site.pushes.came.length, 0, "nobody is near yet");
    await site.operate("POST", "push/admit", { count: 2 });
    await soon("the message", async () => site.pushes.came.length, 1);
    const { path, body, headers } = site.pushes.came[0];
    assert.deepEqual([path, headers["content-encoding"], headers.authorization.endsWith(`k=${push_key}`)], ["/p/ana", "aes128gcm", true]);
    const message = opens(body);
    assert.deepEqual(message, { room: "push", title: "Your turn comes near: Autumn Lights Festival", url: "/push/", name: "Autumn Lights Festival", ahead: 1,
      body: "1 person is before you. Go back to the page where you wait; this message does not keep your place." });
    await delivers(context, page, "push", JSON.stringify(message));
    const shown = { title: "Your turn is near", tag: "waitroom-push", lang: "en", dir: "ltr", data: { room: "push", url: `${site.url}/push/seats?row=5` },
      body: "Autumn Lights Festival · 1 person ahead of you\nGo back to the page where you wait: this notification does not keep your place." };
    assert.deepEqual(await soon("the notification", () => notifications(page, "push"), it => it.length === 1), [shown]);
    // A repeat takes the place of the first.
    await delivers(context, page, "push", JSON.stringify({ ...message, ahead: null }));
    const turn = await soon("the second", () => notifications(page, "push"), it => it[0]?.title === "It is your turn");
    assert.equal(turn.length, 1);

    // A press. Only a person's own lets a worker move windows: what it would move is written down.
    const worker = context.serviceWorkers().find(it => it.url().includes("/push/worker.js"));
    await worker.evaluate(() => {
      self.moved = [];
      WindowClient.prototype.focus = async function () { moved.push(["focus", this.url]); return this; };
      Clients.prototype.openWindow = async url => { moved.push(["open", url]); };
    });
    const pressed = (room, url) => worker.evaluate(async ([room, url]) => { moved.length = 0; await back({ room, url }); return moved; }, [room, url]);
    const page_url = `${site.url}/push/seats?row=5`;
    const beside = await opened(context, "/push/other");
    await place(beside, 2);
    assert.deepEqual((await pressed("push", page_url)).map(([how]) => how), ["focus"], "a page that waits is enough");
    await beside.close();
    assert.deepEqual(await pressed("push", "/anywhere"), [["focus", page_url]], "a page that waits, wherever it is");
    assert.deepEqual(await pressed("other", `${site.url}/other/`), [["open", `${site.url}/other/`]], "a page of another room does not wait here");
    assert.deepEqual(await pressed("other", page_url), [["focus", page_url]], "one that is there and sleeps is not opened twice");
    assert.deepEqual(await pressed("other", null), []);
  });

  test("a worker opens addresses of its own host, and never what a message could smuggle in", async context => {
    const { subscription } = receiver(`${site.pushes.url}/p/way`);
    await subscribes(context, subscription);
    await site.room("way", {}, { notices: ["push"] });
    await site.crowd("way", 3);
    const page = await opened(context, "/way/?next=//evil.example/&x=%22");
    await place(page, 4);
    await open(page);
    await page.click("#wish_yes");
    await soon("the wish", () => wish(context, "way"), "waiting");
    const worker = context.serviceWorkers()[0];
    const ways = given => worker.evaluate(all => all.map(url => way({ url })), given);
    const here = `${site.url}/way/?next=//evil.example/&x=%22`;
    assert.deepEqual(await ways(["https://shop.example/", "javascript:alert(1)", null]), [here, here, here], "back to where one was");
    // Registered without a word of where that was, or with a foreign one: as the message says, if that can be opened.
    for (const to of ["", "&to=" + encodeURIComponent("//evil.example/"), "&to=" + encodeURIComponent("https://evil.example/"), "&to=javascript:alert(1)", "&to=data:,x"]) {
      await page.evaluate(to => navigator.serviceWorker.register("/.waitroom/push/worker.js?lang=en" + to, { scope: "/.waitroom/push/way/" }), to);
      const other = await soon("the other worker", async () => context.serviceWorkers().find(it => it.url().endsWith("?lang=en" + to)), Boolean);
      await soon("it is at work", () => page.evaluate(async () => (await navigator.serviceWorker.getRegistration("/.waitroom/push/way/")).active?.scriptURL), it => it === other.url());
      const found = await other.evaluate(all => all.map(url => way({ url })), ["https://shop.example/a", "/b", "javascript:alert(1)", "data:,x", "http://[", "", undefined]);
      assert.deepEqual(found, ["https://shop.example/a", `${site.url}/b`, null, null, null, null, null], to);
    }
    // What is no message of ours is shown as nothing but the host, and what is half of one as it is.
    for (const [given, title, body] of [["", "127.0.0.1", ""], ["[1]", "127.0.0.1", ""], ["null", "127.0.0.1", ""], ["{", "127.0.0.1", ""],
      [JSON.stringify({ room: "way", title: "A title", body: "A body", ahead: -1, name: "x" }), "A title", "A body"]]) {
      await delivers(context, page, "way", given);
      const all = await soon(`${given} is shown`, () => notifications(page, "way"), all => all.some(it => it.title === title && it.body === body));
      assert.ok(all.every(it => it.data.url === null), given);
    }
  });

  test("a notification speaks the language of the page", async () => {
    for (const [locale, ahead, title, body, dir] of [
      ["de", 0, "Sie sind bald dran", "Herbst · Sie sind als Nächstes dran\n", "ltr"],
      ["ru", 23, "Скоро ваша очередь", "Herbst · 23 человека перед вами\n", "ltr"],
      ["ar", null, "حان دورك", "Herbst\n", "rtl"]]) {
      const context = await someone({ locale, colorScheme: "dark" });
      await subscribes(context, receiver(`${site.pushes.url}/p/${locale}`).subscription);
      await site.room("speaks", {}, { notices: ["push"] });
      await site.crowd("speaks", 2);
      const page = await opened(context, "/speaks/");
      await soon("a place", () => page.locator("#word").isVisible(), true);
      await open(page);
      assert.equal(await page.locator("#ways").isVisible(), false, "one way is no choice");
      assert.equal(await page.evaluate(() => document.activeElement.id), "wish_yes");
      assert.deepEqual(await complaints(page), []);
      await page.click("#wish_yes");
      await soon("the wish", () => wish(context, "speaks"), "waiting");
      await delivers(context, page, "speaks", JSON.stringify({ room: "speaks", title: "x", body: "x", url: "", name: "Herbst", ahead }));
      const [shown] = await soon("the notification", () => notifications(page, "speaks"), it => it.length === 1);
      assert.deepEqual([shown.title, shown.body.startsWith(body), shown.lang, shown.dir], [title, true, locale, dir], shown.body);
      assert.deepEqual(context.wrong, []);
      await context.close();
    }
  });

  test("who takes a notification back leaves nothing in the browser, and another way takes its place", async context => {
    await subscribes(context, receiver(`${site.pushes.url}/p/back`).subscription);
    await site.room("back", {}, { notices: ["email", "push"] });
    await site.crowd("back", 3);
    const page = await opened(context, "/back/");
    await place(page, 4);
    const asks = async () => {
      await open(page);
      await page.check("#ways [value=push]");
      await page.click("#wish_yes");
      await page.locator("#wish").waitFor({ state: "hidden" });
      await soon("the wish", () => wish(context, "back"), "waiting");
      assert.equal((await workers(page)).length, 1);
    };
    await asks();
    // Also after a reload: what is asked for is the server's to know.
    await page.reload();
    await place(page, 4);
    await open(page);
    await page.locator("#wish_off").waitFor({ state: "visible" });
    await page.click("#wish_off");
    await soon("the wish is gone", () => wish(context, "back"), null);
    await soon("the worker is gone", async () => (await workers(page)).length, 0);
    await asks();
    await open(page);
    await page.check("#ways [value=email]");
    await page.fill("#to", "ana@shop.example.org");
    await page.click("#wish_yes");
    await page.locator("#wish").waitFor({ state: "hidden" });
    await soon("the worker is gone", async () => (await workers(page)).length, 0);
    assert.equal(await wish(context, "back"), "waiting");
    // And with the place.
    await asks();
    await page.click("#leave");
    await page.click("#yes");
    await says(page, "lead", "You left the line.");
    await soon("the worker is gone", async () => (await workers(page)).length, 0);
  });

  test("a worker of the site stays as it is", async context => {
    await subscribes(context, receiver("https://push.elsewhere.example/p").subscription);
    await site.room("own-worker", {}, { notices: ["push"] });
    const page = await opened(context, "/own-worker/");
    await place(page, 1);
    await page.evaluate(async () => { await navigator.serviceWorker.register("/worker-of-the-site.js", { scope: "/" }); });
    const before = await workers(page);
    assert.deepEqual(before, [`${site.url}/`]);
    await open(page);
    await page.click("#wish_yes");
    await says(page, "wish_wrong", "Notifications from here do not work in this browser.");
    await soon("ours is gone and theirs is there", async () => (await workers(page)).join(), before.join());
    // And where there is none of ours to be removed. The browser answers in order: what the page asks after
    // all that leaving asks of it is answered when that is done.
    await page.click("#wish_no");
    await page.click("#leave");
    await page.click("#yes");
    await says(page, "lead", "You left the line.");
    await page.evaluate(async () => {
      for (let i = 0; i < 5; i++) for (const one of await navigator.serviceWorker.getRegistrations()) await one.pushManager.getSubscription();
    });
    assert.deepEqual(await workers(page), before);
  });

  test("where notifications are not allowed the page says what to do, and asks only after a press", async context => {
    await context.addInitScript(() => {
      const ask = Notification.requestPermission;
      window.prompts = 0;
      Notification.requestPermission = (...more) => { window.prompts++; return ask.apply(Notification, more); };
    });
    await site.room("denied", {}, { notices: ["push", "sms"] });
    await site.crowd("denied", 3);
    const page = await opened(context, "/denied/");
    await place(page, 4);
    await open(page);
    assert.equal(await page.evaluate(() => window.prompts), 0);
    await page.click("#wish_yes");
    await says(page, "wish_wrong", "Please allow notifications from this site in your browser’s settings, then try again.");
    assert.equal(await page.evaluate(() => window.prompts), 1);
    assert.equal(await page.evaluate(() => document.activeElement.id), "wish_yes");
    assert.deepEqual(await complaints(page), []);
    assert.deepEqual([await wish(context, "denied"), await workers(page)], [null, []], "nothing was asked for");
    // The other way is still open.
    await page.check("#ways [value=sms]");
    await page.fill("#to", "+49 151 12345678");
    await page.click("#wish_yes");
    await page.locator("#wish").waitFor({ state: "hidden" });
    await soon("the wish", () => wish(context, "denied"), "waiting");
  });

  test("a push service that the room does not know is refused kindly, and the subscription undone", async context => {
    await subscribes(context, receiver("https://push.elsewhere.example/p").subscription);
    await site.room("foreign", {}, { notices: ["push", "email"] });
    const page = await opened(context, "/foreign/");
    await place(page, 1);
    await open(page);
    const answer = page.waitForResponse(it => it.url().endsWith("/notify") && it.status() === 400);
    await page.click("#wish_yes");
    await answer;
    await says(page, "wish_wrong", "Notifications from here do not work in this browser.");
    await soon("the worker is gone", async () => (await workers(page)).length, 0);
    assert.equal(await wish(context, "foreign"), null);
    // A vendor's service that cannot be reached: this Chromium's own, which nobody stubbed.
    const other = await someone();
    await other.grantPermissions(["notifications"], { origin: site.url });
    const plain = await opened(other, "/foreign/");
    await place(plain, 2);
    await open(plain);
    await plain.click("#wish_yes");
    await says(plain, "wish_wrong", "Notifications from here do not work in this browser.");
    await soon("the worker is gone", async () => (await workers(plain)).length, 0);
    await other.close();
    // Not the browser's fault: said so, and it can be tried again.
    await page.route("**/notify", route => route.fulfill({ status: 503, contentType: "application/json", body: "{}" }));
    await page.click("#wish_yes");
    await says(page, "wish_wrong", "It is not your fault. Please try again in a moment.");
    await soon("the worker is gone", async () => (await workers(page)).length, 0);
    assert.equal(await page.locator("#wish_yes").isEnabled(), true);
  });

  test("a browser that cannot is not offered it, and has no dead button", async context => {
    await context.addInitScript(() => { delete window.PushManager; });
    await site.room("cannot", {}, { notices: ["push"] });
    const page = await opened(context, "/cannot/");
    await place(page, 1);
    assert.equal(await page.locator("#move").isVisible(), true);
    assert.equal(await page.locator("#word").isVisible(), false);
    await site.room("can-mail", {}, { notices: ["push", "email"] });
    const other = await opened(context, "/can-mail/");
    await place(other, 1);
    await open(other);
    assert.deepEqual([await offered(other), await other.locator("#ways").isVisible()], [["email"], false]);
    assert.equal(await other.evaluate(() => document.activeElement.id), "to");
  });
};
