"""Verify deliveries with the standard library of Python: `PENSTOCK_SIGNING_SECRET=whsec_... python receive.py`."""

import base64
import hashlib
import hmac
import os
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["PENSTOCK_SIGNING_SECRET"].removeprefix("whsec_"), validate=True)
TOLERANCE_S = 300


def is_valid(id_: str, sent: str, signatures: str, body: bytes) -> bool:
    """Return whether Penstock signed these exact bytes less than five minutes ago. The texts are headers."""
    if not id_ or not re.fullmatch("[0-9]{1,11}", sent) or abs(time.time() - int(sent)) > TOLERANCE_S:
        return False
    digest = hmac.digest(KEY, f"{id_}.{sent}.".encode() + body, hashlib.sha256)
    expected = b"v1," + base64.b64encode(digest)
    return any(hmac.compare_digest(expected, given.encode()) for given in signatures.split(" "))


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to a valid delivery and 401 to any other request."""

    def do_POST(self) -> None:
        """Verify the body before it is parsed."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        id_, sent, signatures = (self.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
        valid = is_valid(id_, sent, signatures, body)
        if valid:
            print("received", id_, flush=True)  # handle each id once: a retry has the id of the first attempt
        self.send_response(204 if valid else 401)
        self.end_headers()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
