// How the waiting page asks the browser itself for a notification. Put into page.js where it says
// so, and only in rooms that push: nobody else carries these bytes.
//
// Lives here: permission, the worker (push-worker.js), the subscription, and taking all of it back.
// Stays out: what the room is told and what the visitor reads, which is page.js.
const worker = navigator.serviceWorker, scope = data.base + "/push/" + data.room + "/";
// No dead choice: old browsers, private windows and pages without TLS lack one of these.
if (!worker || !window.PushManager || !window.Notification) ways.querySelector("[value=push]").parentNode.remove();
else {
  // The worker knows its language and where it was asked for by its own address.
  const ready = async () => {
    const back = encodeURIComponent(location.pathname + location.search);
    const one = await worker.register(data.base + "/push/worker.js?lang=" + data.lang + "&to=" + back, { scope });
    const fresh = one.installing || one.waiting;
    if (fresh) await new Promise(done => {
      fresh.onstatechange = () => { if (/^(activated|redundant)$/.test(fresh.state)) done(); };
      fresh.onstatechange();
    });
    return one.pushManager;
  };
  push = {
    // What the room needs to reach this browser. Throws the text that says why not.
    ask: async keyed => {
      // First of all: browsers show their question only to somebody who has just pressed.
      if (await Notification.requestPermission() !== "granted" || !box.open) throw "word_push_denied";
      const key = await keyed();
      if (!key) throw "error_note";
      const make = async () => {
        const manager = await ready();
        push.made = !await manager.getSubscription();
        return manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
      };
      for (let again = true; ; again = false) try {
        // A browser whose push service is away may never say so.
        return await Promise.race([make(), new Promise((_, late) => setTimeout(late, 1e4))]);
      } catch {
        // One of before may be of another key, of an earlier installation of the server: without it, then.
        await push.undo();
        if (!again) throw "word_push_failed";
      }
    },
    // Nothing of it stays: neither the subscription nor the worker, nor what it showed. Only ours:
    // the browser would also give us the site's own, whose scope is wider.
    undo: async () => {
      try {
        const one = (await worker.getRegistrations()).find(it => it.scope === location.origin + scope);
        const old = one && await one.pushManager.getSubscription();
        if (old) await old.unsubscribe();
        if (one) await one.unregister();
      } catch { /* the browser says that there is nothing */ }
    },
  };
  // Whoever presses the notification comes back to this page, and not to a second one.
  worker.addEventListener("message", event => {
    if (event.data && event.data.waits === data.room && event.ports[0]) event.ports[0].postMessage(1);
  });
  worker.startMessages();
}
