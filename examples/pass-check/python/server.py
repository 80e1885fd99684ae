"""A shop that lets in only those who hold a pass: WSGI middleware for Flask, Django and the like.

    pip install -r requirements.txt && python3 server.py

WAITROOM_ROOM, WAITROOM_KEYS (…/.well-known/jwks.json), WAITROOM_PAGE (where to wait), PORT;
WAITROOM_DEV=1 over plain HTTP, where a browser takes no `__Host-` cookie.
"""

import json
import os
import re
import time
from socketserver import ThreadingMixIn
from urllib.parse import parse_qsl, quote, urlencode
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from waitroom_pass import NoKeys, Refused, RemoteKeys, check


class WaitroomPass:
    """Puts the claims into `environ["waitroom.pass"]` and calls `app`, or sends people to wait."""

    def __init__(self, app, *, room, keys, page, dev=False):
        self.app, self.room, self.keys, self.page = app, room, keys, page
        self.cookie_name = f"{'' if dev else '__Host-'}wr-pass-{room}"
        self.cookie_end = f"; HttpOnly; SameSite=Lax{'' if dev else '; Secure'}"

    def __call__(self, environ, start_response):
        query = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        arriving = dict(query).get("wr_pass")
        now = int(time.time())
        # Behind a proxy of yours, take the address from what that proxy says.
        shown = {"ip": environ.get("REMOTE_ADDR"), "user_agent": environ.get("HTTP_USER_AGENT")}
        try:
            pass_ = arriving or environ.get("HTTP_WAITROOM_PASS") or self.cookie_of(environ)
            if not pass_:
                raise Refused("pass_missing")
            claims = check(
                pass_, keys=self.keys, room=self.room, now=now, shown=shown, unseen=["nonce"]
            )
        except Refused as refused:
            return self.refuse(refused, environ, start_response)
        except NoKeys:
            start_response("503 Service Unavailable", [("Retry-After", "5")])
            return [b""]
        if not arriving:
            environ["waitroom.pass"] = claims
            return self.app(environ, start_response)
        # An address is copied, logged and sent as referrer: the pass moves to the cookie at once.
        rest = urlencode([(name, value) for name, value in query if name != "wr_pass"])
        path = quote("/" + environ.get("PATH_INFO", "").lstrip("/\\"), encoding="latin-1")
        to = path + (f"?{rest}" if rest else "")
        return self.redirect(to, self.cookie(pass_, claims["exp"] - now), start_response)

    def refuse(self, refused, environ, start_response):
        if "text/html" in environ.get("HTTP_ACCEPT", ""):
            return self.redirect(self.page, self.cookie("", 0), start_response)
        headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        start_response("403 Forbidden", headers + [("Set-Cookie", self.cookie("", 0))])
        return [json.dumps({"code": refused.code, "waiting_room": self.page}).encode()]

    def redirect(self, to, cookie, start_response):
        headers = [("Location", to), ("Set-Cookie", cookie), ("Cache-Control", "no-store")]
        start_response("303 See Other", headers + [("Referrer-Policy", "no-referrer")])
        return [b""]

    def cookie(self, value, max_age):
        return f"{self.cookie_name}={value}; Path=/; Max-Age={max_age}{self.cookie_end}"

    def cookie_of(self, environ):
        found = re.search(
            rf"(?:^|;)\s*{re.escape(self.cookie_name)}=([^;\s]*)", environ.get("HTTP_COOKIE", "")
        )
        return found and found[1]


def shop(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"Welcome, {environ['waitroom.pass']['sub']}.\n".encode()]


class QuietHandler(WSGIRequestHandler):
    def log_request(self, *_):
        """The line of a request may hold a pass: it stays out of the log."""


class ThreadingServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


if __name__ == "__main__":
    app = WaitroomPass(
        shop,
        room=os.environ["WAITROOM_ROOM"],
        keys=RemoteKeys(os.environ["WAITROOM_KEYS"]),
        page=os.environ["WAITROOM_PAGE"],
        dev=bool(os.environ.get("WAITROOM_DEV")),
    )
    port = int(os.environ.get("PORT", "3000"))
    make_server("127.0.0.1", port, app, ThreadingServer, QuietHandler).serve_forever()
