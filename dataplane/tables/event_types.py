"""Event types of a source: check its events against the subjects of the schema registry that it uses. Pure.

An event in JSON has a type, which selects the subject whose newest version it must fit. An event in Avro names its
schema, which must be a version of one of the source's subjects. Bodies inside Penstock are JSON: Avro is converted.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Self

from dataplane.ledger.meta import CE_PREFIX, CONTENT_TYPE, Headers
from dataplane.schemas.container import Container
from dataplane.schemas.json_event import json_mismatch
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.schemas.wire import (
    FramedValue,
    Framing,
    avro_tree,
    check_json,
    framing_of,
    is_avro_type,
    json_event,
    split,
)
from dataplane.spec.schema import Check, SchemaError, compile_schema, pointer_of
from dataplane.stages.paths import Segments, compile_path, get
from dataplane.tables.control import ControlTable
from dataplane.tables.records import TYPE_IN_FIELD, TYPE_IN_HEADER, EventTypesRecord, RegisteredSchema, SubjectRecord

CE_HEADER: Final = "ce-"  # of HTTP; the attribute that CE_PREFIX begins in Kafka
MOST_SHOWN: Final = 5  # event types in an error text

log = logging.getLogger(__name__)


class EventMisfitError(Exception):
    """An event does not fit its source. `code`: of the refusal; `pointer`: JSON pointer, "" for the whole event.

    is_unloaded: the event could not be judged, because a subject has not been published yet
    event_type:  name of the event's type; "" if it is unknown or the source has one type
    version:     version that the event was checked with, `<subject>@<number>`; "" if it was checked with none
    """

    def __init__(self, code: str, pointer: str, reason: str, *, is_unloaded: bool = False) -> None:
        super().__init__(f"{pointer or 'the event'}: {reason}")
        self.code = code
        self.pointer = pointer
        self.reason = reason
        self.is_unloaded = is_unloaded
        self.event_type = ""
        self.version = ""

    def of_type(self, event_type: str, version: str = "") -> Self:
        """Name the type of the event, and the version that it was checked with."""
        self.event_type, self.version = event_type, version
        return self


class AdmittedEvent(NamedTuple):
    """An event that fits: the version that it was checked with (`<subject>@<number>`), and its body in JSON, decoded.

    schema: "" if the version cannot be run by this release, so that nothing was checked
    """

    schema: str
    body: bytes
    value: Any


class CompiledVersion:
    """One version of a subject, compiled on first use."""

    def __init__(self, subject: str, registered: RegisteredSchema) -> None:
        self.subject = subject
        self.name = f"{subject}@{registered.number}"
        self.fingerprint = registered.fingerprint
        self.schema = ParsedSchema(
            registered.type, registered.document, "", registered.fingerprint, None, (), registered.document
        )
        self._check: Check | None = None
        self._runs: bool | None = None

    @property
    def is_avro(self) -> bool:
        """True for Avro, False for JSON Schema."""
        return self.schema.type is SchemaType.AVRO

    def runs(self) -> bool:
        """Return True if this release can run the schema. Registration refuses all others."""
        if self._runs is None:
            try:
                if self.is_avro:
                    avro_tree(self.schema)
                else:
                    self._check = compile_schema(self.schema.document)
            except (SchemaError, SchemaRejectedError) as exc:
                log.error("%s is not enforced: %s", self.name, exc)
                self._runs = False
            else:
                self._runs = True
        return self._runs

    def check_json(self, body: bytes, value: Any, now_us: int) -> None:
        """Check an event in JSON. Raises EventMisfitError."""
        if value is None and body.strip() != b"null":
            raise EventMisfitError("schema", "", "needs JSON, or Avro in one of its framings")
        if self._check is None:
            try:
                check_json(self.schema, body, now_us)
            except SchemaRejectedError as exc:
                raise EventMisfitError("schema", exc.path, exc.reason) from exc
        elif (misfit := json_mismatch(self._check, body, value)) is not None:
            raise EventMisfitError("schema", misfit.pointer, misfit.reason)


class EventTypeGate:
    """Compiled event types of one source.

    header, type_path: the header or the path of the field that names the type of an event; "" if none does
    """

    def __init__(self, record: EventTypesRecord, subjects: Mapping[str, SubjectRecord]) -> None:
        """Compile the record; `subjects`: those of its subjects that have been published."""
        self._types = record.subjects
        self._names = {subject: name for name, subject in reversed(record.subjects.items())}
        self._path: Segments | None = None
        self._where = "its type"
        self.header = ""
        self.type_path = ""
        if record.type_from.startswith(TYPE_IN_FIELD):
            self.type_path = record.type_from.removeprefix(TYPE_IN_FIELD)
            self._path = compile_path(self.type_path)
            self._where = f"a text in the field {self.type_path}, which names its type"
        elif record.type_from.startswith(TYPE_IN_HEADER):
            self.header = record.type_from.removeprefix(TYPE_IN_HEADER).lower()
            self._where = f"the header {self.header}, which names its type"
        self._newest: dict[str, CompiledVersion] = {}
        self._by_id: dict[int, CompiledVersion] = {}
        self._by_fingerprint: dict[str, list[CompiledVersion]] = {}
        self._is_whole = all(subject in subjects for subject in record.subjects.values())
        for subject in dict.fromkeys(record.subjects.values()):
            for registered in reversed(subjects[subject].schemas if subject in subjects else []):
                version = CompiledVersion(subject, registered)
                self._newest.setdefault(subject, version)
                self._by_id.setdefault(registered.schema_id, version)
                self._by_fingerprint.setdefault(registered.fingerprint, []).append(version)

    @property
    def record_header(self) -> str:
        """Return the header of a request or record that names the type; "" if none does, or a CloudEvents attribute."""
        return "" if self.header.startswith(CE_HEADER) else self.header

    def admit(self, body: bytes, value: Any, headers: Headers, type_header: str, now_us: int) -> AdmittedEvent:
        """Check an event in JSON or in framed Avro. Raises EventMisfitError.

        value:       the decoded body; None also for a body that is not JSON
        headers:     content type and CloudEvents attributes
        type_header: text of `record_header`
        now_us:      our clock, for the clocks of TimeUuids
        """
        if value is None and (framing_of(body) is not None or _has_avro_type(headers)):
            return self.admit_avro(body, now_us)
        return self.admit_json(body, value, self._header_of(headers, type_header), now_us)

    def _header_of(self, headers: Headers, type_header: str) -> str:
        if not self.header.startswith(CE_HEADER):
            return type_header
        name = CE_PREFIX + self.header.removeprefix(CE_HEADER)
        return next((text.decode("utf-8", "replace") for key, text in headers if key == name), "")

    def admit_json(self, body: bytes, value: Any, type_header: str, now_us: int) -> AdmittedEvent:
        """Check an event in JSON with the newest version of its type's subject; its body stays as it was sent.

        now_us: our clock, for the clocks of TimeUuids. Raises EventMisfitError.
        """
        name = self._type_of(value, type_header)
        subject = self._types.get(name)
        if subject is None:
            raise EventMisfitError("event-type-unknown", self._pointer, self._known_types()).of_type(name)
        version = self._newest.get(subject)
        if version is None:
            raise _unloaded()
        if not version.runs():
            return AdmittedEvent("", body, value)
        try:
            version.check_json(body, value, now_us)
        except EventMisfitError as exc:
            exc.of_type(name, version.name)
            raise
        return AdmittedEvent(version.name, body, value)

    def admit_avro(self, data: bytes, now_us: int) -> AdmittedEvent:
        """Check one event in Avro, in Confluent's or Gilt's framing, and convert it. Raises EventMisfitError."""
        try:
            framed = split(data)
        except SchemaRejectedError as exc:
            raise EventMisfitError("avro-invalid", exc.path, exc.reason) from exc
        version = self._version_of(framed)
        try:
            value, body = json_event(version.schema, framed.payload, now_us)
        except SchemaRejectedError as exc:
            misfit = EventMisfitError("schema", exc.path, exc.reason)
            raise misfit.of_type(self._names[version.subject], version.name) from exc
        return AdmittedEvent(version.name, body, value)

    def open_container(self, data: bytes) -> "CheckedContainer":
        """Return the events of an object container file. Raises EventMisfitError if none of them can be read."""
        try:
            container = Container(data)
        except SchemaRejectedError as exc:
            raise EventMisfitError("avro-invalid", exc.path, exc.reason) from exc
        found = self._by_fingerprint.get(container.schema.fingerprint, [])
        # Logical types are not part of a fingerprint: the version that is the same document decides, else the newest.
        same = [version for version in found if version.schema.document == container.schema.document]
        version = self._runnable([*same, *found])
        return CheckedContainer(container, version, self._names[version.subject])

    @property
    def _pointer(self) -> str:
        return pointer_of(self._path or ())

    def _type_of(self, value: Any, type_header: str) -> str:
        if self._path is not None:
            found = get(value, self._path)
        elif self.header:
            found = type_header
        else:
            return ""
        if not isinstance(found, str) or not found:
            raise EventMisfitError("event-type-missing", self._pointer, f"needs {self._where}")
        return found

    def _known_types(self) -> str:
        known = sorted(self._types)
        more = f" and {len(known) - MOST_SHOWN} more" if len(known) > MOST_SHOWN else ""
        return f"needs {self._where}: one of {', '.join(known[:MOST_SHOWN])}{more}"

    def _version_of(self, framed: FramedValue) -> CompiledVersion:
        match framed.framing:
            case Framing.CONTAINER:
                raise EventMisfitError("avro-invalid", "", "needs one event here, got an object container file")
            case Framing.CONFLUENT:
                known = self._by_id.get(framed.schema_id or 0)
                found = [known] if known is not None else []
            case Framing.FINGERPRINT:
                found = self._by_fingerprint.get(framed.fingerprint or "", [])
        return self._runnable(found)

    def _runnable(self, found: list[CompiledVersion]) -> CompiledVersion:
        """Return the first of these versions of Avro that this release can run. Raises EventMisfitError."""
        for version in found:
            if not version.is_avro:
                reason = f"needs JSON without a framing, because {version.name} is a JSON Schema"
                raise EventMisfitError("schema-unknown", "", reason)
            if version.runs():
                return version
        if not self._is_whole:
            raise _unloaded()
        raise EventMisfitError(
            "schema-unknown", "", "needs a schema that is one of the newest versions of the source's subjects"
        )


class CheckedContainer:
    """Events of an object container file, all of one type. `count`: how many it states."""

    def __init__(self, container: Container, version: CompiledVersion, event_type: str) -> None:
        self.count = container.count
        self._event_type = event_type
        self._container, self._version = container, version

    def read(self, now_us: int) -> Iterator[AdmittedEvent | EventMisfitError]:
        """Yield each event, or why it does not fit, `count` altogether; each is read on demand."""
        for item in self._container.read(self._version.schema, now_us):
            if isinstance(item, SchemaRejectedError):
                yield EventMisfitError("schema", item.path, item.reason).of_type(self._event_type, self._version.name)
            else:
                yield AdmittedEvent(self._version.name, item.text, item.value)


class EventTypeGates:
    """Gates of all sources, from the control table; each is compiled again only when one of its records changed."""

    def __init__(self, table: ControlTable) -> None:
        self._table = table
        self._gates: dict[tuple[str, str], tuple[list[int], EventTypeGate]] = {}

    def find(self, tenant: str, pipe: str, source: str) -> EventTypeGate | None:
        """Return the gate of a source; None if it takes all events."""
        record = self._table.event_types(pipe, source)
        if record is None or not record.subjects:
            self._gates.pop((pipe, source), None)
            return None
        found = {name: self._table.subject(tenant, name) for name in record.subjects.values()}
        subjects = {name: subject for name, subject in found.items() if subject is not None and subject.schemas}
        versions = [record.version, *(subjects[name].version if name in subjects else 0 for name in found)]
        known = self._gates.get((pipe, source))
        if known is None or known[0] != versions:
            known = self._gates[pipe, source] = (versions, EventTypeGate(record, subjects))
        return known[1]


def as_json(headers: Headers) -> Headers:
    """Return the headers of an event whose body has been converted to JSON."""
    return [(CONTENT_TYPE, b"application/json"), *(header for header in headers if header[0] != CONTENT_TYPE)]


def _has_avro_type(headers: Headers) -> bool:
    return any(name == CONTENT_TYPE and is_avro_type(text.decode("latin-1")) for name, text in headers)


def _unloaded() -> EventMisfitError:
    return EventMisfitError("unavailable", "", "its schema has not been loaded yet; send it again", is_unloaded=True)
