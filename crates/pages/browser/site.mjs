// A shop behind a waiting room, for the tests: the real server, and a small proxy before it.
//
// `/ROOM/…` is the shop: with a pass that the server's public keys confirm it sells, without one it
// shows the waiting page in place. `/.waitroom/…` goes to the server without its prefix, WebSockets
// too. `/.waitroom/wait?to=…` is the page for browsers without script.
import { spawn } from "node:child_process";
import { createPublicKey, verify } from "node:crypto";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { gzipSync } from "node:zlib";

const KEY = "browser-test-owner-key";
// The rooms in which a message can be asked for; which ways a page offers, its test says.
const NOTIFYING = "word,form,push,way,speaks,back,own-worker,denied,foreign,cannot,can-mail";

export const openSite = async renderer => {
  const program = process.env.WAITROOM_BIN;
  if (!program) throw new Error("WAITROOM_BIN must name the waitroom program: cargo build -p waitroom");
  const data = mkdtempSync(join(tmpdir(), "waitroom-pages-"));
  let server = null, addresses = { public: "127.0.0.1:0", admin: "127.0.0.1:0", grpc: "127.0.0.1:0" };

  // Who carries text messages: the room asks for one, and it is remembered here.
  const texts = [], carrier = createServer((ask, answer) => {
    let body = "";
    ask.on("data", more => { body += more; });
    ask.on("end", () => { texts.push(JSON.parse(body)); answer.writeHead(204); answer.end(); });
  });
  await new Promise(done => carrier.listen(0, "127.0.0.1", done));
  // Who carries pushes to browsers: what came, sealed as it is.
  const came = [], pusher = createServer((ask, answer) => {
    const parts = [];
    ask.on("data", more => parts.push(more));
    ask.on("end", () => { came.push({ path: ask.url, headers: ask.headers, body: Buffer.concat(parts) }); answer.writeHead(201); answer.end(); });
  });
  await new Promise(done => pusher.listen(0, "127.0.0.1", done));
  const pushAt = `127.0.0.1:${pusher.address().port}`;
  const secret = join(data, "sms.secret");
  writeFileSync(secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");

  const start = async () => {
    const { public: open, admin, grpc } = addresses;
    server = spawn(program, ["serve", "--dev", "--addresses-json", "--public", open, "--admin", admin, "--grpc", grpc, "--data", data], {
      env: { ...process.env, WAITROOM_ADMIN_KEY: KEY, WAITROOM_LIMITS_JOIN: "none", WAITROOM_LIMITS_STATUS: "none",
        WAITROOM_LIMITS_HEARTBEAT: "none", WAITROOM_LIMITS_SESSION: "none", WAITROOM_NOTIFY_ROOMS: NOTIFYING, WAITROOM_NOTIFY_NEAR_AHEAD: "1",
        WAITROOM_NOTIFY_NEAR_WAIT: "0s", WAITROOM_NOTIFY_SMTP: "127.0.0.1:1", WAITROOM_NOTIFY_FROM: "queue@shop.example",
        WAITROOM_NOTIFY_SMS_URL: `http://127.0.0.1:${carrier.address().port}/sms`, WAITROOM_NOTIFY_SMS_SECRET_FILE: secret,
        WAITROOM_NOTIFY_PUSH_SUBJECT: "mailto:ops@shop.example", WAITROOM_NOTIFY_PUSH_HOSTS: pushAt, WAITROOM_NOTIFY_ALLOW_PRIVATE: "true" }, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    server.stderr.on("data", more => { said += more; });
    const line = await new Promise((tell, fail) => {
      createInterface({ input: server.stdout }).once("line", tell);
      server.once("exit", code => fail(new Error(`the server ended with ${code}: ${said}`)));
    });
    addresses = JSON.parse(line);
  };
  const kill = () => new Promise(done => { server.removeAllListeners("exit"); server.once("exit", done); server.kill("SIGKILL"); });
  await start();

  // What an operator does.
  const operate = async (method, path, body) => {
    const answer = await fetch(`http://${addresses.admin}/admin/v1/rooms/${path}`, { method, body: body && JSON.stringify(body),
      headers: { "X-Api-Key": KEY, "Content-Type": "application/json" } });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  };
  const visitor = async (room, verb, method = "GET", headers = {}) => {
    const answer = await fetch(`http://${addresses.public}/v1/rooms/${room}/${verb}`, { method, headers });
    return { ok: answer.ok, status: answer.status, cookies: answer.headers.getSetCookie(), body: await answer.json().catch(() => ({})) };
  };
  // People who stand before the one we watch.
  const crowd = async (room, count) => {
    const all = [];
    for (let i = 0; i < count; i++) all.push((await visitor(room, "join", "POST")).body);
    return all;
  };

  const rooms = new Map(), sold = [];
  const passHolds = async (pass, room) => {
    const [head, claims, signature] = pass.split(".");
    const read = part => JSON.parse(Buffer.from(part, "base64url"));
    const { keys } = await (await fetch(`http://${addresses.public}/.well-known/jwks.json`)).json();
    const key = createPublicKey({ key: keys.find(({ kid }) => kid === read(head).kid), format: "jwk" });
    const good = verify("sha256", Buffer.from(`${head}.${claims}`), { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"));
    return good && JSON.stringify(read(claims)).includes(`"${room}"`) && read(claims).exp * 1000 > Date.now();
  };

  const send = (answer, page, more = {}) => {
    if (!page.html) throw new Error(JSON.stringify(page));
    const body = gzipSync(page.html);
    answer.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Encoding": "gzip", "Content-Length": body.length,
      "Content-Security-Policy": page.content_security_policy, "Cache-Control": "no-store", ...more });
    answer.end(body);
  };
  const pageFor = (room, ask, more) => renderer.render({ room, title: "Autumn Lights Festival", base: "/.waitroom", refresh_s: 1,
    now_ms: Date.now(), accept_language: ask.headers["accept-language"] || "", ...rooms.get(room), ...more });

  const withoutScript = async (ask, answer, url) => {
    const to = url.searchParams.get("to") || "/", room = to.split("/")[1];
    const cookie = { cookie: ask.headers.cookie || "", "waitroom-request": "page" };
    let got = await visitor(room, "status", "GET", cookie);
    if (got.status === 401) got = await visitor(room, "join", "POST", cookie);
    const set = got.cookies.length ? { "Set-Cookie": got.cookies } : {};
    if (["admitted", "active"].includes(got.body.status)) {
      const { body } = await visitor(room, "claim", "POST", cookie);
      answer.writeHead(303, { Location: `${to}${to.includes("?") ? "&" : "?"}wr_pass=${body.pass}` });
      return answer.end();
    }
    send(answer, await pageFor(room, ask, { answer: JSON.stringify(got.body), back_to: to }), set);
  };

  const shop = async (ask, answer, url) => {
    const room = url.pathname.split("/")[1];
    if (room === "worker-of-the-site.js") { answer.writeHead(200, { "Content-Type": "text/javascript" }); return answer.end("// It works."); }
    if (!rooms.has(room)) { answer.writeHead(404); return answer.end(); }
    const pass = url.searchParams.get("wr_pass");
    if (pass && await passHolds(pass, room)) {
      url.searchParams.delete("wr_pass");
      const where = url.pathname + url.search;
      sold.push({ room, where });
      answer.writeHead(200, { "Content-Type": "text/html" });
      return answer.end(`<!doctype html><title>Shop</title><h1>Bought</h1><p id="where">${where.replace(/[<&]/g, "")}</p>`);
    }
    send(answer, await pageFor(room, ask, { back_to: url.pathname + url.search }));
  };

  const blocked = new Set();
  const proxy = createServer((ask, answer) => {
    const url = new URL(ask.url, "http://site");
    const failed = error => { answer.headersSent || answer.writeHead(502); answer.end(String(error)); };
    if (url.pathname === "/.waitroom/wait") return withoutScript(ask, answer, url).catch(failed);
    if (!url.pathname.startsWith("/.waitroom/")) return shop(ask, answer, url).catch(failed);
    if (blocked.has(url.pathname.split("/").pop())) { answer.writeHead(404); return answer.end(); }
    const [host, port] = addresses.public.split(":");
    // The worker is the gate's, which knows it by its whole address.
    const path = url.pathname.startsWith("/.waitroom/push/") ? ask.url : ask.url.slice("/.waitroom".length);
    const on = request({ host, port, path, method: ask.method, headers: ask.headers }, back => {
      answer.writeHead(back.statusCode, back.headers);
      back.pipe(answer);
    });
    on.on("error", failed);
    answer.on("close", () => on.destroy());
    ask.pipe(on);
  });
  proxy.on("upgrade", (ask, socket, early) => {
    if (blocked.has("live")) return socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    const [host, port] = addresses.public.split(":");
    const on = connect(port, host, () => {
      const lines = [];
      for (let i = 0; i < ask.rawHeaders.length; i += 2) lines.push(`${ask.rawHeaders[i]}: ${ask.rawHeaders[i + 1]}`);
      on.write(`${ask.method} ${ask.url.slice("/.waitroom".length)} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      on.write(early);
      on.pipe(socket).pipe(on);
    });
    for (const one of [on, socket]) one.on("error", () => { on.destroy(); socket.destroy(); });
  });
  await new Promise(done => proxy.listen(0, "127.0.0.1", done));

  return {
    url: `http://127.0.0.1:${proxy.address().port}`, blocked, sold, texts, pushes: { url: `http://${pushAt}`, came }, operate, crowd, visitor, kill, start,
    // A room of this name; `shown` is what the page is told besides (a title, a message, a theme).
    room: async (name, settings = {}, shown = {}) => {
      await operate("PUT", name, { queue_all: true, rate: null, max_active: 1000, target_url: `/${name}/`, ...settings });
      rooms.set(name, shown);
    },
    close: async () => { for (const one of [carrier, pusher]) { one.closeAllConnections(); one.close(); } proxy.closeAllConnections(); proxy.close(); await kill(); rmSync(data, { recursive: true, force: true }); },
  };
};
