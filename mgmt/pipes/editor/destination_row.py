"""Row of a destination in the editor's form, and its conversion from and to the document of a spec. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from dataplane.spec import HttpDestination
from dataplane.spec.postgres import DEFAULT_COLUMNS, DEFAULT_KEY
from mgmt.pipes.editor.steps import StepRow

URL_TO_COME: Final = "https://example.com/hooks"
# Fields that must not be empty, with the values that a dry run uses until they are entered.
TO_COME: Final[Mapping[str, Mapping[str, str]]] = {
    "http": {"url": URL_TO_COME},
    "s3": {"url": "https://s3.example.com/bucket", "region": "us-east-1", "access_key_id": "AKIAIOSFODNN7EXAMPLE"},
    "postgres": {"host": "db.example.com", "database": "shop", "user": "penstock", "table": "events"},
}
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": ("url",), "topic": ("compacted", "remove_when"), "lake": (), "table": ("table", "key", "remove_when"),
    "s3": ("url", "region", "access_key_id", "prefix"),
    "postgres": ("host", "port", "database", "user", "schema", "table", "columns", "key", "on_conflict", "ca"),
}  # fmt: skip
TYPED: Final = tuple(dict.fromkeys(field for fields in KINDS.values() for field in fields))  # of any kind
BATCH_LIMITS: Final = ("max_events", "max_bytes", "max_wait_ms")
BATCHED: Final = ("s3", "postgres")  # kinds whose limits of a batch are in the form
# Formats of the encoding that each kind may have.
ENCODING_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": ("avro", "confluent"), "topic": ("avro", "confluent"), "lake": ("columns",), "table": (), "s3": (),
    "postgres": (),
}  # fmt: skip
ORIGINAL: Final = "original"  # among the formats of kind http: the body as it was received
STARTS_IN_PAST: Final = ("http", "topic")  # kinds that may start with earlier events
_AUTH: Final = "authentication"
_KEPT: Final = {
    "auth": _AUTH, "headers": "constant headers", "rules": "rules for responses", "rate_per_s": "a rate limit",
    "retry": "retries", "batch": "batches", "ordered": "order", "timeout_s": "a time limit",
    "concurrency": "concurrent requests",
}  # fmt: skip
MAX_DIGITS: Final = 18  # of a number; a longer one is left as text


@dataclass(frozen=True)
class DestinationRow:
    """Destination as typed, with its own steps; the other fields depend on the kind.

    `format`, `subject` and `version` are those of its encoding; without a format it gets JSON, and with ORIGINAL the
    body as it was received. `forward_headers` are names, separated by commas; `body` is that of its template.
    `beginning` is the document's `from`, `object_format` that of the objects in a bucket.
    `columns` has one `name: expression` on each line, and `key` of a database names separated by commas.
    `test` is the id of the newest test request to it, "" if there was none.
    """

    name: str = ""
    was: str = ""
    kind: str = "http"
    url: str = ""
    region: str = ""
    access_key_id: str = ""
    prefix: str = ""
    object_format: str = ""
    table: str = ""
    key: str = ""
    host: str = ""
    port: str = ""
    database: str = ""
    user: str = ""
    schema: str = ""
    columns: str = ""
    on_conflict: str = ""
    ca: str = ""
    max_events: str = ""
    max_bytes: str = ""
    max_wait_ms: str = ""
    compacted: str = ""
    remove_when: str = ""
    format: str = ""
    subject: str = ""
    version: str = ""
    forward_headers: str = ""
    body: str = ""
    beginning: str = ""
    steps: tuple[StepRow, ...] = ()
    test: str = ""

    @property
    def missing(self) -> list[str]:
        """Names of the empty fields that must have a value."""
        return [name for name in TO_COME.get(self.kind, ()) if not getattr(self, name).strip()]

    def completed(self) -> "DestinationRow":
        """Return the row with the values of a dry run in the fields that are missing."""
        values: dict[str, Any] = {name: TO_COME[self.kind][name] for name in self.missing}
        return replace(self, **values)


def destination_row(name: str, one: Mapping[str, Any]) -> DestinationRow:
    """Return a destination of a document as a row, without its steps."""
    kind = one.get("type", "http")
    typed: dict[str, Any] = {field: one.get(field) or "" for field in KINDS[kind]}
    if kind == "s3":
        typed["object_format"] = one.get("format", "")
    if kind == "postgres":
        typed |= {"port": str(one.get("port", "")), "key": ", ".join(one.get("key", DEFAULT_KEY))}
        typed["columns"] = column_lines(one.get("columns", DEFAULT_COLUMNS))
    typed |= batch_limits(one)
    if "compacted" in typed:
        typed["compacted"] = "yes" if typed["compacted"] else ""
    encoding = one.get("encoding") or {}
    typed |= {field: str(encoding.get(field, "")) for field in ("format", "subject", "version")}
    if one.get("original_body"):
        typed["format"] = ORIGINAL
    typed["forward_headers"] = ", ".join(one.get("forward_headers") or ())
    typed["body"] = (one.get("template") or {}).get("body") or ""
    return replace(DestinationRow(name, name, kind), beginning=one.get("from", ""), **typed)


def batch_limits(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a batch of a destination of a document, as typed, if the form has fields for them."""
    batch = (one.get("batch") or {}) if one.get("type") in BATCHED else {}
    return {limit: str(value) for limit, value in batch.items() if limit in BATCH_LIMITS}


def destination_document(row: DestinationRow, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a destination, with fields kept from the base document if the kind is the same."""
    known: dict[str, Any] = base.get("destinations", {}).get(row.was, {})
    kept = known if known.get("type", "http") == row.kind else {}
    typed: dict[str, Any] = {name: getattr(row, name).strip() for name in KINDS.get(row.kind, ())}
    kept = {name: value for name, value in kept.items() if name not in ("encoding", "from")}
    if row.kind == "topic":  # an absent field, because earlier releases of the data plane refuse it
        kept = {name: value for name, value in kept.items() if name not in typed}
        removes = row.compacted and typed["remove_when"]
        typed = ({"compacted": True} if row.compacted else {}) | (
            {"remove_when": typed["remove_when"]} if removes else {}
        )
    elif row.kind == "s3":
        typed["format"] = row.object_format or "jsonl"
    elif row.kind == "http":
        kept, typed = _http_fields(row, kept, typed)
    elif row.kind == "postgres":
        kept = {name: value for name, value in kept.items() if name not in typed}
        typed = _table_of(row, typed)
    elif not typed.get("remove_when", True):
        typed["remove_when"] = None
    if row.kind in BATCHED:
        kept, typed = _with_batch(row, kept, typed)
    if row.format in ENCODING_FORMATS.get(row.kind, ()):
        typed["encoding"] = {"format": row.format, "subject": row.subject.strip(), "version": _number(row.version)}
    if row.kind in STARTS_IN_PAST and row.beginning.strip():
        typed["from"] = row.beginning.strip()
    return {"type": row.kind, **kept, **typed}


def _with_batch(
    row: DestinationRow, kept: Mapping[str, Any], typed: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the kept and the typed fields with the limits of a batch. Empty ones are left out: they have a default."""
    limits = {name: _number(text) for name in BATCH_LIMITS if (text := getattr(row, name).strip())}
    kept = {name: value for name, value in kept.items() if name != "batch"}
    return kept, {**typed, **({"batch": limits} if limits else {})}


def _http_fields(
    row: DestinationRow, kept: Mapping[str, Any], typed: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the kept and the typed fields of an `http` destination. A field that is empty is left out.

    An empty value of the document is kept as it is, because an absent one differs from it.
    """
    names = [name for one in row.forward_headers.split(",") if (name := one.strip())]
    template = {**(kept.get("template") or {}), "body": row.body.replace("\r\n", "\n").strip() or None}
    values: dict[str, Any] = {
        "forward_headers": names,
        "original_body": row.format == ORIGINAL,
        "template": template if any(template.values()) else None,
    }
    shown = {name: value for name, value in values.items() if value}
    return {name: value for name, value in kept.items() if name not in values or not value}, {**typed, **shown}


def kept_fields(row: DestinationRow, base: Mapping[str, Any]) -> list[str]:
    """Return the fields of an `http` destination that the form keeps and does not show, in words."""
    known: dict[str, Any] = base.get("destinations", {}).get(row.was, {})
    if row.kind != "http" or known.get("type", "http") != "http":
        return []
    defaults = msgspec.json.decode(msgspec.json.encode(HttpDestination(url=URL_TO_COME)))  # lists, as a stored spec has
    words = [word for name, word in _KEPT.items() if name in known and known[name] != defaults[name]]
    auth, template = known.get("auth") or {}, known.get("template") or {}
    named = f" (header {auth['name']})" if auth.get("type") == "header" else ""
    parts = [f"{part} of the template" for part in ("path", "headers") if template.get(part)]
    return [word + named if word == _AUTH else word for word in (*words, *parts)]


def column_lines(columns: Mapping[str, str]) -> str:
    """Return the columns of a database as text, one on each line."""
    return "\n".join(f"{name}: {text}" for name, text in columns.items())


def _table_of(row: DestinationRow, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a database. Empty ones are left out: they have a default, or the parser names them."""
    found: dict[str, Any] = {name: value for name, value in typed.items() if value}
    if row.port.strip():
        found["port"] = _number(row.port)
    if row.ca.strip():
        found["ca"] = row.ca.replace("\r\n", "\n")
    if row.columns.strip():  # otherwise the form has not shown the columns yet
        lines = [line.partition(":")[::2] for line in row.columns.splitlines() if line.strip()]
        found["columns"] = {name.strip(): text.strip() for name, text in lines}
        found["key"] = [name for part in row.key.split(",") if (name := part.strip())]
    else:
        found.pop("key", None)
    return found


def _number(typed: str) -> int | str:
    """Return a number as typed; the parser of the spec refuses text."""
    typed = typed.strip()
    return int(typed) if typed.isdecimal() and len(typed) <= MAX_DIGITS else typed
