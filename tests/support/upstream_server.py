"""Server behind a proxy, as a process that a test kills: `python -m tests.support.upstream_server <name> <port> <log>`.

It appends the body of each POST to the log before it waits and answers, so that the log has what reached a killed one.
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER_S = 0.05  # requests are in progress when the process is killed
NAME, PORT, LOG = sys.argv[1:] if len(sys.argv) == 4 else ("", "0", os.devnull)


class Upstream(ThreadingHTTPServer):
    """Server that queues as many connections as it gets."""

    request_queue_size = 1024


class Handler(BaseHTTPRequestHandler):
    """Answers with the name of the server and the headers of the request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a probe or a page."""
        self._answer(200)

    def do_POST(self) -> None:
        """Log an event, then accept it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, body + b"\n")
        os.close(log)
        time.sleep(ANSWER_S)
        self._answer(202)

    def log_message(self, *_: Any) -> None:
        """Write nothing to standard error."""

    def _answer(self, status: int) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        content = json.dumps({"server": NAME, "path": self.path, "headers": headers}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    Upstream(("127.0.0.1", int(PORT)), Handler).serve_forever()
