"""A receiver of webhooks: `hook.py SECRET CERT KEY`.

Checks every signature with the reference library of Standard Webhooks. Says its two ports (plain,
TLS) on the first line, then each request as a line of JSON. How it answers is in the path: /ok,
/redirect (to /trap), /slow (never), /picky (refuses who is called bo, until it is told to relent).
"""

import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook

SECRET, CERT, KEY = sys.argv[1:4]
HOOK = Webhook(SECRET)
RELENTED = threading.Event()
FOREVER = threading.Event()
PRINTING = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            HOOK.verify(body, headers)
            verified = True
        except Exception:
            verified = False
        line = {"path": self.path, "verified": verified, "headers": headers, "body": json.loads(body)}
        with PRINTING:
            print(json.dumps(line), flush=True)
        status = 204
        if self.path == "/slow":
            FOREVER.wait()
        if self.path == "/redirect":
            status = 302
        refused = line["body"]["data"].get("user_id") == "bo" and not RELENTED.is_set()
        if self.path == "/picky" and refused:
            status = 422
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/trap")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        with PRINTING:
            print(json.dumps({"path": self.path, "verified": False, "body": {}}), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


plain = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
secure = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERT, KEY)
secure.socket = context.wrap_socket(secure.socket, server_side=True)
for server in [plain, secure]:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"plain": plain.server_port, "secure": secure.server_port}), flush=True)
for line in sys.stdin:
    RELENTED.set()
