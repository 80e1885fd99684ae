"""Checks a pass of a waiting room. Copy this file; it needs `PyJWT[crypto]` and nothing else.

The steps and their codes are those of docs/passes.md. PyJWT checks the signature; the rest is
read here, because a general library does not know what we sign.
"""

import base64
import hashlib
import hmac
import ipaddress
import json
import re
import threading
import time
import urllib.request

import jwt

TICKET = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME_MAX_S = 253402300799  # the end of the year 9999; more is milliseconds
AHEAD_MAX_S = 300
ALGS = ("ES256", "RS256", "EdDSA")


class Refused(Exception):
    def __init__(self, code):
        super().__init__(f"the pass is refused: {code}")
        self.code = code


class NoKeys(Exception):
    """Nobody can be checked now: our trouble, not the visitor's."""


def keys_of(jwks):
    """The keys of a JWK set by `kid`. Kinds that we do not know are left out, symmetric ones too."""
    return {
        key["kid"]: jwt.PyJWK(key)
        for key in jwks["keys"]
        if key.get("alg") in ALGS and key.get("use", "sig") == "sig" and "kid" in key
    }


class RemoteKeys:
    """The published keys: fetched when first needed, again every five minutes, and when a pass
    names a new one (at most every five seconds). If a fetch fails, they stay as they were."""

    def __init__(self, url, every_s=300, retry_s=5):
        self.url, self.every_s, self.retry_s = url, every_s, retry_s
        self.keys, self.asked_at, self.lock = {}, float("-inf"), threading.Lock()

    def get(self, kid):
        age = time.monotonic() - self.asked_at
        if age > self.every_s or (kid not in self.keys and age > self.retry_s):
            # One asks; the others go on with what there is, unless there is nothing yet.
            if self.lock.acquire(blocking=not self.keys):
                try:
                    if time.monotonic() - self.asked_at >= age:
                        self.fetch()
                finally:
                    self.lock.release()
        return self.keys.get(kid)

    def fetch(self):
        try:
            with urllib.request.urlopen(self.url, timeout=5) as answer:
                self.keys = keys_of(json.load(answer))
        except (OSError, ValueError, KeyError, TypeError, jwt.PyJWTError) as error:
            if not self.keys:
                raise NoKeys(str(error)) from None
        finally:
            self.asked_at = time.monotonic()


def check(pass_, *, keys, room, now, shown=None, unseen=(), leeway=0):
    """The claims of `pass_`, or Refused. `shown` is what the request shows: nonce, ip, user_agent.
    `unseen` names bindings that this server can never see, such as a cookie of another host."""
    if len(pass_) > 4096:
        raise Refused("too_long")
    header = object_of(header_of(pass_), "malformed")
    if "crit" in header or "b64" in header:
        raise Refused("crit_unknown")
    if header.get("typ") != "JWT":
        raise Refused("type_wrong")
    kid = header.get("kid")
    key = keys.get(kid) if isinstance(kid, str) else None
    if key is None:
        raise Refused("key_unknown")
    # The key says which algorithm it is for; the header never chooses.
    if header.get("alg") != key.algorithm_name:
        raise Refused("alg_wrong")
    try:
        payload = jwt.PyJWS().decode(pass_, key, algorithms=[key.algorithm_name])
    except jwt.InvalidTokenError:
        raise Refused("signature_wrong") from None
    claims = claims_of(payload)
    if claims["room"] != room:
        raise Refused("room_other")
    if claims["iat"] > now + AHEAD_MAX_S:
        raise Refused("not_yet")
    if now >= claims["exp"] + leeway:
        raise Refused("expired")
    check_binding(claims, shown or {}, unseen)
    return claims


def header_of(pass_):
    parts = pass_.split(".")
    if len(parts) != 3:
        raise Refused("malformed")
    decoded = [decode(part) for part in parts]
    # Decoding and encoding again gives the same text, or it had padding or stray bits.
    if [encode(part) for part in decoded] != parts:
        raise Refused("malformed")
    return decoded[0]


def claims_of(payload):
    claims = object_of(payload, "claims_wrong")
    sub, iat, exp = claims.get("sub"), claims.get("iat"), claims.get("exp")
    good = (
        isinstance(sub, str) and TICKET.fullmatch(sub) and isinstance(claims.get("room"), str)
        and type(iat) is int and type(exp) is int and 0 <= iat < exp <= TIME_MAX_S
        and "aud" not in claims and "nbf" not in claims
        and ("bnd" not in claims or is_binding(claims["bnd"]))
    )
    if not good:
        raise Refused("claims_wrong")
    return claims


def is_binding(bnd):
    known = {"nonce": str, "ip": str, "ip_bits": int, "ua": str}
    return (
        isinstance(bnd, dict)
        and all(type(value) is known.get(name) for name, value in bnd.items())
        and ("ip" in bnd) == ("ip_bits" in bnd) and 0 <= bnd.get("ip_bits", 0) <= 255
    )


def check_binding(claims, shown, unseen):
    bnd = claims.get("bnd", {})
    ip, agent, nonce = shown.get("ip"), shown.get("user_agent"), shown.get("nonce")
    values = {
        "nonce": nonce and nonce.encode(),
        "ip": network(ip, bnd["ip_bits"]) if ip and "ip" in bnd else None,
        "ua": agent and agent.encode(),
    }
    for kind, value in values.items():
        if kind not in bnd or kind in unseen:
            continue
        if value is None:
            raise Refused("binding_missing")
        label = f"waitroom/v1/bind/{kind}\0{claims['sub']}\0".encode()
        digest = encode(hashlib.sha256(label + value).digest()[:16])
        if not hmac.compare_digest(digest.encode(), bnd[kind].encode()):
            raise Refused("binding_wrong")


def network(ip, bits):
    """Family, prefix length, and the address with all later bits cleared."""
    address = ipaddress.ip_address(ip)
    address = getattr(address, "ipv4_mapped", None) or address
    width = address.max_prefixlen
    kept = int(address) >> max(0, width - bits) << max(0, width - bits)
    return bytes([address.version, bits]) + kept.to_bytes(width // 8, "big")


def object_of(text, code):
    def once(pairs):
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a name twice")
        return dict(pairs)

    try:
        value = json.loads(text.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise Refused(code) from None
    if not isinstance(value, dict):
        raise Refused(code)
    return value


def decode(part):
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise Refused("malformed") from None


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
