"""Read subjects and event types by Penstock's API."""

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from dataplane.schemas.parse import parse, schema_type
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError
from penstock_cli.profiles import Profile
from typed_clients.build import EventSchema
from typed_clients.model import ClientError

TIMEOUT_S: Final = 30
MAX_SCHEMAS: Final = 200  # that one schema may need, as the registry limits it
NEWEST: Final = 0


class RegistryApi:
    """The schema registry of one installation, as a user sees it. `tenant`: needed only if there are several."""

    def __init__(self, profile: Profile, tenant: str = "") -> None:
        self._url = f"{profile.url}/api/v1"
        basic = base64.b64encode(f"{profile.user}:{profile.password}".encode()).decode()
        self._authorization = f"Bearer {profile.token}" if profile.token else f"Basic {basic}"
        self._tenant = tenant
        self._versions: dict[tuple[str, int], Mapping[str, Any]] = {}

    def event_types(self, pipe: str, source: str) -> dict[str, str]:
        """Return the subjects of a source by event type. Raises ClientError."""
        found = self._get(f"pipes/{quote(pipe, safe='')}/sources/{quote(source, safe='')}/event-types/")
        if not found["types"]:
            raise ClientError(f"{pipe}/{source}: needs a source with event types")
        return {one["name"]: one["subject"] for one in found["types"]}

    def event_schema(self, event_type: str, subject: str, number: int = NEWEST) -> EventSchema:
        """Return a version of a subject, with the schemas that it refers to. Raises ClientError."""
        version = self._version(subject, number)
        try:
            return EventSchema(event_type, subject, version["number"], self._parsed(version))
        except SchemaRejectedError as exc:
            raise ClientError(f"{subject}: {exc}") from exc

    def _parsed(self, version: Mapping[str, Any]) -> ParsedSchema:
        references = {
            one["name"]: self._parsed(self._version(one["subject"], one["version"])) for one in version["references"]
        }
        return parse(schema_type(version["type"]), version["schema"], references)

    def _version(self, subject: str, number: int) -> Mapping[str, Any]:
        if (subject, number) not in self._versions:
            if len(self._versions) >= MAX_SCHEMAS:
                raise ClientError(f"{subject}: needs at most {MAX_SCHEMAS} schemas")
            id_, newest = self._subject(subject)
            self._versions[subject, number] = self._get(f"schemas/{id_}/versions/{number or newest}/")
        return self._versions[subject, number]

    def _subject(self, name: str) -> tuple[str, int]:
        """Return id and newest version of a subject."""
        rows = self._get(f"schemas/?{urlencode({'name': name})}")["results"]
        rows = [one for one in rows if not self._tenant or one["tenant"] == self._tenant]
        if len(rows) > 1:
            raise ClientError(f"{name}: is a subject of several tenants; choose one with --tenant")
        if not rows or rows[0]["newest_version"] is None:
            raise ClientError(f"{name}: needs a subject that exists and has a version")
        return rows[0]["id"], rows[0]["newest_version"]

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(f"{self._url}/{path}", headers={"Authorization": self._authorization})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 the user's own URL
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise ClientError(f"{self._url}/{path}: {error.code} {_detail(error.read())}") from error
        except (OSError, ValueError) as error:
            raise ClientError(f"{self._url}/{path}: {error}") from error


def _detail(body: bytes) -> str:
    try:
        return str(json.loads(body).get("detail", ""))
    except (ValueError, AttributeError):
        return ""
