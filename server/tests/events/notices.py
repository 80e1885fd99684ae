"""Whoever carries notices to people: `notices.py SECRET`.

A mail server (aiosmtpd), an address for text messages that checks signatures with the reference
library of Standard Webhooks, and a push service with a browser behind it, which opens messages with
http_ece and checks who sent them with PyJWT. Says where they are on the first line, then everything
that came as a line of JSON. Numbers that end in 000 do not exist.
"""

import asyncio
import base64
import json
import os
import sys
import threading
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import http_ece
import jwt
from aiosmtpd.smtp import SMTP
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from standardwebhooks import Webhook

HOOK = Webhook(sys.argv[1])
BROWSER = ec.generate_private_key(ec.SECP256R1())
AUTH = os.urandom(16)
PRINTING = threading.Lock()


def text(raw):
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def show(**line):
    with PRINTING:
        print(json.dumps(line), flush=True)


class Mail:
    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.content, policy=policy.default)
        show(by="email", to=envelope.rcpt_tos, sender=mail["from"], subject=mail["subject"], text=mail.get_content())
        return "250 OK"


class Services(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status = 201
        if self.path == "/sms":
            HOOK.verify(body.decode(), headers)
            said = json.loads(body)
            status = 404 if said["to"].endswith("000") else 201
            show(by="sms", to=said["to"], text=said["text"], status=status)
        else:
            token, key = headers["authorization"].removeprefix("vapid t=").split(", k=")
            point = base64.urlsafe_b64decode(key + "=")
            public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
            claims = jwt.decode(token, public, algorithms=["ES256"], audience=ORIGIN)
            opened = http_ece.decrypt(body, private_key=BROWSER, auth_secret=AUTH, version="aes128gcm")
            show(by="push", claims=claims, key=key, ttl=headers["ttl"], message=json.loads(opened))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


services = ThreadingHTTPServer(("127.0.0.1", 0), Services)
ORIGIN = f"http://127.0.0.1:{services.server_port}"
threading.Thread(target=services.serve_forever, daemon=True).start()
point = BROWSER.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
subscription = {
    "endpoint": f"{ORIGIN}/push/planted-subscription",
    "expirationTime": None,
    "keys": {"p256dh": text(point), "auth": text(AUTH)},
}


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Mail(), loop=loop), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    show(smtp=port, services=services.server_port, subscription=subscription)
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
