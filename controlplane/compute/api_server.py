"""Client of the Kubernetes API: the three calls that cells need, with the pod's service account."""

import json
import ssl
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from controlplane.compute.port import ComputeError

TIMEOUT_S: Final = 2.0
ANSWER_BYTES: Final = 4 * 1024 * 1024
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ApiServer(Struct, frozen=True):
    """The API server at this URL. `account`: directory of the token, which is read for each call, as it is renewed."""

    url: str
    account: Path = ACCOUNT

    def get(self, path: str) -> dict[str, Any] | None:
        """Return the object at `path`, or None if there is none. Raises ComputeError."""
        return self._call("GET", path, absent_is_fine=True)

    def apply(self, path: str, manifest: dict[str, Any]) -> None:
        """Apply the manifest (server-side apply), which leaves all other fields unchanged. Raises ComputeError."""
        self._call("PATCH", f"{path}?fieldManager=penstock&force=true", manifest)

    def delete(self, path: str) -> None:
        """Remove the object, if it is there. Raises ComputeError."""
        self._call("DELETE", path, absent_is_fine=True)

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, absent_is_fine: bool = False
    ) -> dict[str, Any] | None:
        status, content = self._exchange(method, path, json.dumps(body) if body is not None else None)
        if status == 404 and absent_is_fine:
            return None
        found = _object(content)
        if status >= 300 or found is None:
            message = (found or {}).get("message", "no object")
            raise ComputeError(f"{method} {path.partition('?')[0]}: {status}, {message}"[:300])
        return found

    def _exchange(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        address = urlsplit(self.url)
        try:
            headers = {
                "Authorization": f"Bearer {(self.account / 'token').read_text().strip()}",
                "Accept": "application/json",
                "Content-Type": "application/apply-patch+yaml",  # JSON is YAML
            }
            trust = ssl.create_default_context(cafile=self.account / "ca.crt")
            connection = HTTPSConnection(address.hostname or "", address.port, timeout=TIMEOUT_S, context=trust)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                return response.status, response.read(ANSWER_BYTES)
            finally:
                connection.close()
        except (OSError, HTTPException) as exc:
            raise ComputeError(f"{self.url} does not respond: {exc}"[:300]) from exc


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
