"""The HTTP server and the sign-in page that the identity providers of tests share."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

SIGN_IN_PAGE: Final = """<!doctype html><html lang="en"><title>Identity provider</title>
<link rel="icon" href="data:,"><main><h1>Identity provider</h1>
<form method="post"><label>E-mail <input name="email"></label> <button>Sign in here</button></form></main></html>"""


class ProviderServer:
    """Server on the loopback interface, at a free port unless one is given."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.port = self._server.server_port

    def start(self) -> None:
        """Serve in a thread until `stop`."""
        Thread(target=self._server.serve_forever, daemon=True).start()

    def serve(self) -> None:
        """Serve in the caller's thread."""
        self._server.serve_forever()

    def stop(self) -> None:
        """Stop serving and close the port."""
        self._server.shutdown()
        self._server.server_close()
