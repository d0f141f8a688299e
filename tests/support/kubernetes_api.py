"""The parts of a Kubernetes API server that cells need, over TLS: it checks the token and every object's schema.

It is no cluster: nothing runs, nothing is defaulted, and nothing is persisted.
"""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import kubernetes_validate

from controlplane.compute.api_server import ApiServer
from tests.support.trust import Trust

VERSION = "1.37.0"
TOKEN = "a token"


class KubernetesCluster:
    """Objects of the API server by path, and the calls that were made."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.objects: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.refuses = False


@contextmanager
def cluster(folder: Path) -> Iterator[KubernetesCluster]:
    """Run an API server on 127.0.0.1 with the service account that it accepts in `folder`."""
    trust = Trust(folder)
    (folder / "ca.crt").write_text(trust.ca_file.read_text())
    (folder / "token").write_text(f"{TOKEN}\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trust.server_file)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        made = KubernetesCluster(ApiServer(f"https://127.0.0.1:{server.server_port}", folder))
        server.cluster = made  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """Handler of one API call."""

    def do_GET(self) -> None:
        """Read an object."""
        found = self._cluster().objects.get(self.path)
        self._answer(200 if found else 404, found or _status("not found"))

    def do_DELETE(self) -> None:
        """Delete an object."""
        found = self._cluster().objects.pop(self.path, None)
        self._answer(200 if found else 404, _status("removed" if found else "not found"))

    def do_PATCH(self) -> None:
        """Apply an object server-side; there is one field manager, so the body is the whole object."""
        path, _, query = self.path.partition("?")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if query != "fieldManager=penstock&force=true" or path.rpartition("/")[2] != body["metadata"]["name"]:
            self._answer(400, _status("needs a field manager, and the name that the path has"))
            return
        try:
            kubernetes_validate.validate(body, VERSION, strict=True)
        except kubernetes_validate.ValidationError as exc:
            self._answer(422, _status(exc.message))
            return
        self._cluster().objects[path] = body
        self._answer(200, body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Write nothing to standard error."""

    def _cluster(self) -> KubernetesCluster:
        made: KubernetesCluster = self.server.cluster  # type: ignore[attr-defined]
        made.calls.append(self.command)
        return made

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            status, body = 401, _status("Unauthorized")
        elif self.server.cluster.refuses:  # type: ignore[attr-defined]
            status, body = 403, _status("deployments.apps is forbidden")
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _status(message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "message": message}
