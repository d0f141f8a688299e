"""Receive webhooks and verify their signatures with the `standardwebhooks` library (`pip install standardwebhooks`).

Reads PENSTOCK_SIGNING_SECRET and, optionally, PORT (default 9000). Prints one line per message: its id and its body.
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

WEBHOOK = Webhook(os.environ["PENSTOCK_SIGNING_SECRET"])
seen: set[str] = set()  # a real receiver keeps the ids in its database, in the transaction that handles the message


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to each message with a valid signature, and 401 to any other request."""

    protocol_version = "HTTP/1.1"  # keeps the connection open for the next message

    def do_POST(self) -> None:
        """Verify the signature over the exact bytes, then handle the message once."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            WEBHOOK.verify(body, dict(self.headers.items()), json_parse=False)
        except (WebhookVerificationError, ValueError) as error:  # ValueError: malformed headers or body
            self.answer(401, str(error).encode())
            return
        message_id = self.headers["webhook-id"]
        if message_id not in seen:  # a retry has the id of the first attempt
            print(message_id, body.decode(), flush=True)
            seen.add(message_id)
        self.answer(204)

    def answer(self, status: int, body: bytes = b"") -> None:
        """Send a response. Penstock retries after 429, 5xx and no response, and gives up after any other 4xx."""
        self.send_response(status)
        if body:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: standard output has the messages."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
