"""Schemas of subjects and of a source's event types, read from the schema registry."""

from typing import Any, Final

from dataplane.schemas.parse import parse, schema_type
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError
from penstock_cli.connection import Connection
from penstock_client.api.operations import get_event_types, get_subject_version, list_subjects
from typed_clients.build import EventSchema
from typed_clients.model import ClientError

MAX_SCHEMAS: Final = 200  # that one schema may need, as the registry limits it
NEWEST: Final = 0


class RegistrySchemas:
    """The schema registry of one installation, as a user sees it. `tenant`: needed only if there are several."""

    def __init__(self, connection: Connection, tenant: str = "") -> None:
        self._connection, self._tenant = connection, tenant
        self._versions: dict[tuple[str, int], Any] = {}

    def event_types(self, pipe: str, source: str) -> dict[str, str]:
        """Return the subjects of a source by event type. Raises ClientError, CliError."""
        found = self._connection.call(get_event_types.sync_detailed, pipe, source)
        if not found.types:
            raise ClientError(f"{pipe}/{source}: needs a source with event types")
        return {one.name: one.subject for one in found.types}

    def event_schema(self, event_type: str, subject: str, number: int = NEWEST) -> EventSchema:
        """Return a version of a subject, with the schemas that it refers to. Raises ClientError, CliError."""
        version = self._version(subject, number)
        try:
            return EventSchema(event_type, subject, version.number, self._parsed(version))
        except SchemaRejectedError as exc:
            raise ClientError(f"{subject}: {exc}") from exc

    def _parsed(self, version: Any) -> ParsedSchema:
        references = {
            one["name"]: self._parsed(self._version(one["subject"], one["version"])) for one in version.references
        }
        return parse(schema_type(version.type_), version.schema, references)

    def _version(self, subject: str, number: int) -> Any:
        if (subject, number) not in self._versions:
            if len(self._versions) >= MAX_SCHEMAS:
                raise ClientError(f"{subject}: needs at most {MAX_SCHEMAS} schemas")
            id_, newest = self._subject(subject)
            version = self._connection.call(get_subject_version.sync_detailed, id_, str(number or newest))
            self._versions[subject, number] = version
        return self._versions[subject, number]

    def _subject(self, name: str) -> tuple[str, int]:
        """Return id and newest version of a subject."""
        rows = self._connection.pages(list_subjects.sync_detailed, name=name)
        found = [one for one in rows if one.name == name and self._tenant in ("", one.tenant)]
        if len(found) > 1:
            raise ClientError(f"{name}: is a subject of several tenants; choose one with --tenant")
        if not found or found[0].newest_version is None:
            raise ClientError(f"{name}: needs a subject that exists and has a version")
        return found[0].id, found[0].newest_version
