"""A store that checks AWS Signature Version 4 as its documentation describes, independently of libcurl."""

import hashlib
import hmac
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit


def signature_of(
    method: str, url: str, headers: Mapping[str, str], body: bytes, signed: str, scope: str, secret: str
) -> str:
    """Return the signature of a request without a query.

    headers: by name in lower case
    signed:  names of the signed headers, as in `SignedHeaders`
    scope:   date, region, service and `aws4_request`
    """
    date, region, service, ending = scope.split("/")
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed.split(";"))
    payload = hashlib.sha256(body).hexdigest()
    path = quote(unquote(urlsplit(url).path), safe="/-_.~")
    request = f"{method}\n{path}\n\n{lines}\n{signed}\n{payload}"
    text = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, ending):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


class Store:
    """Bucket on this host: `objects` by path, `headers` of each; answers 403 to a wrong signature."""

    def __init__(self, access_key_id: str, secret: str) -> None:
        self.objects: dict[str, bytes] = {}
        self.headers: dict[str, Mapping[str, str]] = {}
        self.refused = 0
        self._access_key_id, self._secret = access_key_id, secret
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(store.put(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def put(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """Store an object and return the status."""
        method, _, fields = headers.get("authorization", "").partition(" ")
        given = dict(field.strip().partition("=")[::2] for field in fields.split(","))
        access_key_id, _, scope = given.get("Credential", "").partition("/")
        is_known = method == "AWS4-HMAC-SHA256" and access_key_id == self._access_key_id
        if not is_known or given["Signature"] != signature_of(
            "PUT", path, headers, body, given["SignedHeaders"], scope, self._secret
        ):
            self.refused += 1
            return 403
        self.objects[unquote(path)], self.headers[unquote(path)] = body, headers
        return 200

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
