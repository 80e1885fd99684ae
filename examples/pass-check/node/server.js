// A shop that lets in only those who hold a pass. `npm install && npm start`
//
// WAITROOM_ROOM, WAITROOM_KEYS (…/.well-known/jwks.json), WAITROOM_PAGE (where to wait), PORT;
// WAITROOM_DEV=1 over plain HTTP, where a browser takes no `__Host-` cookie.

import { createServer } from "node:http";
import { Refused, check, remoteKeys } from "./pass.js";

const { WAITROOM_ROOM: room, WAITROOM_KEYS, WAITROOM_PAGE: page, WAITROOM_DEV, PORT = "3000" } = process.env;
const keys = remoteKeys(WAITROOM_KEYS);
const cookieName = `${WAITROOM_DEV ? "" : "__Host-"}wr-pass-${room}`;
const cookie = (value, maxAge) =>
  `${cookieName}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${WAITROOM_DEV ? "" : "; Secure"}`;

/** Answers whoever has no good pass; returns the claims of whoever has. */
async function inside(request, response) {
  const url = new URL(request.url, "http://shop");
  const arriving = url.searchParams.get("wr_pass");
  const now = Math.floor(Date.now() / 1000);
  // Behind a proxy of yours, take the address from what that proxy says.
  const shown = { ip: request.socket.remoteAddress, user_agent: request.headers["user-agent"] };
  try {
    const pass = arriving ?? request.headers["waitroom-pass"] ?? cookieOf(request);
    if (pass === undefined) throw new Refused("pass_missing");
    const claims = await check(pass, { keys, room, now, shown, unseen: ["nonce"] });
    if (arriving === null) return claims;
    // An address is copied, logged and sent as referrer: the pass moves to the cookie at once.
    url.searchParams.delete("wr_pass");
    response.setHeader("Set-Cookie", cookie(pass, claims.exp - now));
    redirect(response, url.pathname.replace(/^\/+/, "/") + url.search);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    response.setHeader("Set-Cookie", cookie("", 0));
    if (request.headers.accept?.includes("text/html")) return redirect(response, page);
    response.writeHead(403, { "Content-Type": "application/json", "Cache-Control": "no-store" });
    response.end(JSON.stringify({ code: error.code, waiting_room: page }));
  }
}

function redirect(response, to) {
  response.writeHead(303, { Location: to, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" });
  response.end();
}

function cookieOf(request) {
  const pairs = (request.headers.cookie ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1);
}

createServer(async (request, response) => {
  try {
    const claims = await inside(request, response);
    if (claims) response.end(`Welcome, ${claims.sub}.\n`); // your shop goes here
  } catch (error) {
    console.error(error.message); // never the pass
    response.writeHead(503, { "Retry-After": "5" }).end();
  }
}).listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${PORT}`));
