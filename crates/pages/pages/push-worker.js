// The service worker of a room that pushes: shows the one message that a visitor asked for, and
// leads back to the page where they wait.
//
// Lives here: a push, a press on what it showed, and going away afterwards.
// Stays out: the site. There is no `fetch` here, and the scope (`…/push/ROOM/`) holds no page, so it
// stands between nobody and anything. Its policy lets it load nothing.
// `texts` stands before these lines when they are sent, in the language of the page that asked:
// {lang, dir, near, turn, next, ahead, back}.
"use strict";

const parsed = text => { try { return new URL(text, location.origin); } catch { return null; } };

// Where the visitor was when they asked: an address of this host and of no other. Otherwise where
// the message says, which only our own server could seal.
const way = message => {
  const asked = parsed(new URL(location.href).searchParams.get("to") || "//"), told = message.url && parsed(message.url);
  if (asked && asked.origin === location.origin) return asked.href;
  return told && /^https?:$/.test(told.protocol) ? told.href : null;
};

// In the visitor's language where we know what there is to say; otherwise as the message has it.
const words = ({ title, body, name, ahead }) => {
  if (typeof name !== "string" || !(ahead === null || Number.isSafeInteger(ahead) && ahead >= 0)) return { title, body };
  const form = texts.ahead[new Intl.PluralRules(texts.lang).select(ahead)] || texts.ahead.other;
  const stands = ahead === null ? [] : [ahead ? form.replace("{n}", new Intl.NumberFormat(texts.lang).format(ahead)) : texts.next];
  return { title: ahead === null ? texts.turn : texts.near, body: [[name, ...stands].join(" · "), texts.back].join("\n"), lang: texts.lang, dir: texts.dir };
};

const notice = async data => {
  let message = {};
  try { message = data.json() || {}; } catch { /* not of ours: something must be shown all the same */ }
  const { title, ...more } = words(message), room = String(message.room || "");
  await registration.showNotification(title || location.hostname, { ...more, tag: "waitroom-" + room, renotify: true, requireInteraction: true,
    data: { room, url: way(message) } });
  // There is one message. Whoever could still push to this browser afterwards would be one too many.
  const old = await registration.pushManager.getSubscription();
  if (old) await old.unsubscribe();
};

// Says yes when its page waits in this room; a page of the site never answers.
const waits = (client, room) => new Promise(tell => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => tell(client);
  client.postMessage({ waits: room }, [port2]);
});

// A page that sleeps does not answer. Browsers let us open a window for some seconds after a press.
const PATIENCE_MS = 500;

const back = async ({ room, url }) => {
  const windows = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const late = new Promise(tell => setTimeout(tell, PATIENCE_MS));
  const one = await Promise.race([late, ...windows.map(client => waits(client, room))])
    || windows.find(client => client.url.split("#")[0] === url);
  if (one && await one.focus().catch(() => null)) return;
  if (url) await clients.openWindow(url);
};

// Nothing of us stays, unless somebody has asked again since: a push of before took its own
// subscription away.
const end = async () => { if (!await registration.pushManager.getSubscription()) await registration.unregister(); };

addEventListener("install", () => skipWaiting());
addEventListener("push", event => event.waitUntil(notice(event.data)));
addEventListener("notificationclick", event => {
  event.notification.close();
  event.waitUntil(back(event.notification.data || {}).finally(end));
});
addEventListener("notificationclose", event => event.waitUntil(end()));
