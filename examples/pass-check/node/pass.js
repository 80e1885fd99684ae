// Checks a pass of a waiting room. Copy this file; it needs `jose` and nothing else.
//
// The steps and their codes are those of docs/passes.md. `jose` finds the key and checks the
// signature; the claims are read here, because a general library does not know what we sign.

import { createHash, timingSafeEqual } from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";
import { compactVerify, createRemoteJWKSet, errors } from "jose";

const ALGS = ["ES256", "RS256", "EdDSA"];
const TICKET = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TIME_MAX_S = 253402300799; // the end of the year 9999; more is milliseconds
const AHEAD_MAX_S = 300;

export class Refused extends Error {
  constructor(code) {
    super(`the pass is refused: ${code}`);
    this.code = code;
  }
}

/** The published keys: fetched once, again every five minutes, and when a pass names a new one
 *  (at most every five seconds). If a fetch fails, the keys stay as they were. */
export function remoteKeys(url) {
  const keys = createRemoteJWKSet(new URL(url), { cacheMaxAge: Infinity, cooldownDuration: 5_000 });
  setInterval(() => keys.reload().catch(() => {}), 300_000).unref();
  return keys;
}

/** The claims of `pass`, or Refused. `shown` is what the request shows: {nonce, ip, user_agent}.
 *  `unseen` names bindings that this server can never see, such as a cookie of another host. */
export async function check(pass, { keys, room, now, shown = {}, unseen = [], leeway = 0 }) {
  if (pass.length > 4096) throw new Refused("too_long");
  const header = headerOf(pass);
  if ("crit" in header || "b64" in header) throw new Refused("crit_unknown");
  if (header.typ !== "JWT") throw new Refused("type_wrong");
  if (typeof header.kid !== "string") throw new Refused("key_unknown");
  if (!ALGS.includes(header.alg)) throw new Refused("alg_wrong");
  const claims = claimsOf(await payloadOf(pass, keys));
  if (claims.room !== room) throw new Refused("room_other");
  if (claims.iat > now + AHEAD_MAX_S) throw new Refused("not_yet");
  if (now >= claims.exp + leeway) throw new Refused("expired");
  checkBinding(claims, shown, unseen);
  return claims;
}

function headerOf(pass) {
  const parts = pass.split(".");
  // Decoding and encoding again gives the same text, or it had padding or stray bits.
  const exact = (part) => Buffer.from(part, "base64url").toString("base64url") === part;
  if (parts.length !== 3 || !parts.every(exact)) throw new Refused("malformed");
  return objectOf(Buffer.from(parts[0], "base64url"), "malformed");
}

/** The key is found by `kid`, and only one whose own `alg` is that of the header fits. */
async function payloadOf(pass, keys) {
  try {
    return (await compactVerify(pass, keys, { algorithms: ALGS })).payload;
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) throw new Refused("key_unknown");
    if (error instanceof errors.JWSSignatureVerificationFailed) throw new Refused("signature_wrong");
    if (error instanceof errors.JOSEError) throw new Refused("malformed");
    throw error; // no keys to be had: our trouble, not the visitor's
  }
}

function claimsOf(payload) {
  const claims = objectOf(payload, "claims_wrong");
  const { sub, room, iat, exp, bnd } = claims;
  const good =
    typeof sub === "string" && TICKET.test(sub) && typeof room === "string" &&
    Number.isInteger(iat) && Number.isInteger(exp) && 0 <= iat && iat < exp && exp <= TIME_MAX_S &&
    !("aud" in claims) && !("nbf" in claims) && (!("bnd" in claims) || isBinding(bnd));
  if (!good) throw new Refused("claims_wrong");
  return claims;
}

function isBinding(bnd) {
  if (bnd === null || typeof bnd !== "object" || Array.isArray(bnd)) return false;
  const text = (value) => typeof value === "string";
  const bits = (value) => Number.isInteger(value) && 0 <= value && value <= 255;
  const known = new Map([["nonce", text], ["ip", text], ["ip_bits", bits], ["ua", text]]);
  const fits = ([name, value]) => known.get(name)?.(value) ?? false;
  return Object.entries(bnd).every(fits) && "ip" in bnd === "ip_bits" in bnd;
}

function checkBinding({ sub, bnd = {} }, shown, unseen) {
  const values = {
    nonce: shown.nonce,
    ip: shown.ip && bnd.ip && network(shown.ip, bnd.ip_bits),
    ua: shown.user_agent,
  };
  for (const [kind, value] of Object.entries(values)) {
    if (!(kind in bnd) || unseen.includes(kind)) continue;
    if (value === undefined) throw new Refused("binding_missing");
    const digest = createHash("sha256").update(`waitroom/v1/bind/${kind}\0${sub}\0`).update(value).digest();
    const bound = Buffer.from(bnd[kind], "base64url");
    if (bound.length !== 16 || !timingSafeEqual(bound, digest.subarray(0, 16))) {
      throw new Refused("binding_wrong");
    }
  }
}

/** Family, prefix length, and the address with all later bits cleared. */
function network(ip, bits) {
  const address = isIPv6(ip) ? ip.replace(/^::ffff:(?=\d+\.)/i, "") : ip;
  const bytes = isIPv4(address) ? address.split(".").map(Number) : ipv6Bytes(address);
  const kept = bytes.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * at))));
  return Buffer.from([bytes.length === 4 ? 4 : 6, bits, ...kept]);
}

function ipv6Bytes(address) {
  const words = (text) => (text ? text.split(":") : []);
  const [front, back] = address.split("::").map(words);
  const zeros = back ? Array(8 - front.length - back.length).fill("0") : [];
  const all = [...front, ...zeros, ...(back ?? [])].map((word) => parseInt(word, 16));
  return all.flatMap((word) => [word >> 8, word & 0xff]);
}

function objectOf(bytes, code) {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {}
  throw new Refused(code);
}
