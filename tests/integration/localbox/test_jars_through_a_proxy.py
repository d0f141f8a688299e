"""Ivy's JVM asks the proxy of HTTPS_PROXY for the jars, and signs in there."""

import base64
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from localbox.jars import run_ivy
from localbox.java import find_java


class Proxy(ThreadingHTTPServer):
    """Proxy that asks for a user and refuses each host; it records the requests as (target, authorization)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str | None]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_CONNECT(self):
        given = self.headers["Proxy-Authorization"]
        self.server.requests.append((self.path, given))
        self.send_response(403 if given else 407)
        if not given:
            self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Print nothing: the requests are recorded."""


def test_jars_are_requested_through_the_proxy_with_its_user(tmp_path: Path):
    with Proxy() as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            env = {"HTTPS_PROXY": f"http://alice:s%40cret@127.0.0.1:{proxy.server_port}"}
            answer = run_ivy("broker", java=find_java(), ivy_cache=tmp_path / "ivy", lib=tmp_path / "lib", env=env)
        finally:
            proxy.shutdown()
            thread.join()
    assert answer.returncode
    assert "s@cret" not in answer.stdout + answer.stderr
    basic = "Basic " + base64.b64encode(b"alice:s@cret").decode()
    assert ("repo1.maven.org:443", basic) in proxy.requests
