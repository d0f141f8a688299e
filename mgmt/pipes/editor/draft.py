"""Draft of a pipe in the editor, and its conversion from and to a spec document. No database.

Parts of a spec that the editor does not show are kept unchanged: sources and destinations keep the name that they have
in the base document.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dataplane.spec import SpecError
from dataplane.spec.postgres import DEFAULT_COLUMNS, DEFAULT_KEY
from mgmt.pipes.editor.steps import StepRow, json_or_text, row_to_step, step_to_row
from mgmt.sandbox import checked_spec_of

EVERYTHING: Final = "everything"
URL_TO_COME: Final = "https://example.com/hooks"
# Fields that must not be empty, with the values that a dry run uses until they are entered.
TO_COME: Final[Mapping[str, Mapping[str, str]]] = {
    "http": {"url": URL_TO_COME},
    "s3": {"url": "https://s3.example.com/bucket", "region": "us-east-1", "access_key_id": "AKIAIOSFODNN7EXAMPLE"},
    "postgres": {"host": "db.example.com", "database": "shop", "user": "penstock", "table": "events"},
}
_READING: Final = (
    "version", "sources", "normalize", "enrich", "routes", "transform", "destinations", "type", "op", "url", "path",
    "mode", "rules", "when", "to",
)  # fmt: skip
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": ("url",), "topic": ("compacted", "remove_when"), "lake": (), "table": ("table", "key", "remove_when"),
    "s3": ("url", "region", "access_key_id", "prefix"),
    "postgres": ("host", "port", "database", "user", "schema", "table", "columns", "key", "on_conflict", "ca"),
}  # fmt: skip
# Formats of the encoding that each kind may have.
ENCODING_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": ("avro", "confluent"), "topic": ("avro", "confluent"), "lake": ("columns",), "table": (), "s3": (),
    "postgres": (),
}  # fmt: skip
STARTS_IN_PAST: Final = ("http", "topic")  # kinds that may start with earlier events
MAX_DIGITS: Final = 18  # of a number; a longer one is left as text
SOURCE_PATHS: Final = ("event_time", "key", "id", "sequence")
# Fields of the sources that the form creates. Those of type kafka are kept, and written as JSON.
SOURCE_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": SOURCE_PATHS, "kafka": SOURCE_PATHS, "table": ("table", "from", "prefix"),
    "penstock": ("events",),
}  # fmt: skip
_SHOWN: Final = frozenset({"version", "sources", "normalize", "enrich", "routes", "transform", "destinations"})


@dataclass(frozen=True)
class SourceRow:
    """Source as typed; `was` is its name in the base document. The other fields depend on the kind.

    `start` is the document's `from`; `events` are the wanted types, separated by commas.
    """

    name: str = ""
    was: str = ""
    kind: str = "http"
    event_time: str = ""
    key: str = ""
    id: str = ""
    sequence: str = ""
    table: str = ""
    start: str = ""
    prefix: str = ""
    events: str = ""


@dataclass(frozen=True)
class EnrichRow:
    """Look-up as typed."""

    table: str = ""
    key: str = ""
    into: str = ""
    on_missing: str = "keep"
    default: str = ""

    @property
    def empty(self) -> bool:
        """True for a row without input; it is left out."""
        return not (self.key.strip() or self.into.strip())


@dataclass(frozen=True)
class RouteRuleRow:
    """Rule as typed; `to` has indexes of destinations, because their names may change."""

    when: str = ""
    to: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        """True for a row without input; it is left out."""
        return not self.when.strip() and not self.to


@dataclass(frozen=True)
class DestinationRow:
    """Destination as typed, with its own steps; the other fields depend on the kind.

    `format`, `subject` and `version` are those of its encoding; without a format it gets JSON. `beginning` is the
    document's `from`, `object_format` that of the objects in a bucket.
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
    compacted: str = ""
    remove_when: str = ""
    format: str = ""
    subject: str = ""
    version: str = ""
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


@dataclass(frozen=True)
class Draft:
    """Draft of a whole pipe. With `as_json` only `text` counts; `base` is the document that the draft is based on.

    errors: error texts by field id; "" stands for the whole draft
    focus:  the row and button that were used, such as `normalize-1-up`
    """

    name: str = ""
    sources: tuple[SourceRow, ...] = (SourceRow("web"),)
    normalize: tuple[StepRow, ...] = ()
    enrich: tuple[EnrichRow, ...] = ()
    mode: str = EVERYTHING
    rules: tuple[RouteRuleRow, ...] = ()
    otherwise: tuple[int, ...] = ()
    destinations: tuple[DestinationRow, ...] = (DestinationRow("main"),)
    as_json: bool = False
    text: str = ""
    base: Mapping[str, Any] = field(default_factory=dict)
    sample: str = ""
    sample_source: str = ""
    sample_note: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    focus: str = ""

    def document(self) -> dict[str, Any]:
        """Return the spec document. Raises ValueError for text that is not an object, SpecError for duplicate names."""
        if self.as_json:
            return read_object(self.text)
        _refuse_twice("sources", [row.name for row in self.sources])
        _refuse_twice("destinations", [row.name for row in self.destinations])
        return _document(self)

    def document_to_try(self) -> dict[str, Any]:
        """Return the spec document for a dry run, which needs no URL and no rule yet. Raises like `document`."""
        if self.as_json:
            return self.document()
        rows = tuple(row.completed() for row in self.destinations)
        mode = self.mode if any(not rule.empty for rule in self.rules) else EVERYTHING
        return replace(self, destinations=rows, mode=mode).document()

    def written_as_json(self) -> "Draft":
        """Return the draft in JSON mode with the form's content as text, valid or not."""
        return replace(self, as_json=True, text=readable(_document(self)))

    def with_sample(self, sample: str, source: str = "") -> "Draft":
        """Return the draft with a sample event."""
        return replace(self, sample=sample, sample_source=source or self.sample_source)

    def shown_as_form(self) -> "Draft":
        """Return the draft in form mode. Raises ValueError, SpecError, NotEditableAsForm (the form cannot hold it)."""
        document = read_object(self.text)
        checked_spec_of(document)
        if not fits_form(document):
            raise NotEditableAsForm
        return draft_from_spec(self.name, document).with_sample(self.sample, self.sample_source)

    @property
    def hidden_parts(self) -> list[str]:
        """Names of the parts of the spec that the form keeps and does not show."""
        return sorted(name for name, value in self.base.items() if name not in _SHOWN and value)


class NotEditableAsForm(Exception):  # noqa: N818 names the condition that the caller reports
    """The form cannot represent this spec without changing it."""


def draft_from_spec(name: str, document: Mapping[str, Any], *, as_json: bool = False) -> Draft:
    """Return a stored spec as a draft, in JSON mode if the form cannot represent it."""
    text = readable(document)
    if as_json or not fits_form(document):
        return Draft(name=name, as_json=True, text=text, base=document)
    return replace(_read(document), name=name, text=text, base=document)


def fits_form(document: Mapping[str, Any]) -> bool:
    """Return True if a round trip through the form gives the same spec."""
    try:
        return checked_spec_of(_document(_read(document))) == checked_spec_of(document)
    except SpecError:
        return False


def starting_text() -> str:
    """Return a minimal spec as JSON text."""
    document = {
        "version": 1,
        "sources": {"web": {"type": "http"}},
        "normalize": [],
        "destinations": {"main": {"type": "http", "url": "https://example.com/hooks"}},
    }
    return json.dumps(document, indent=2)


def readable(document: Mapping[str, Any]) -> str:
    """Return a spec as JSON text in reading order; the database does not keep the order of keys."""
    return json.dumps(_in_order(document), indent=2, ensure_ascii=False)


def read_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError for anything else."""
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("needs a JSON object")
    return document


def _read(document: Mapping[str, Any]) -> Draft:
    names = list(document["destinations"])
    places = {name: place for place, name in enumerate(names)}
    transform, routes = document.get("transform", {}), document.get("routes")
    rows = [
        replace(_destination_row(name, one), steps=_step_rows(transform.get(name, [])))
        for name, one in document["destinations"].items()
    ]
    draft = Draft(
        sources=tuple(_source_row(name, one) for name, one in document["sources"].items()),
        normalize=_step_rows(document.get("normalize", [])),
        enrich=tuple(_enrich_row(one) for one in document.get("enrich", [])),
        destinations=tuple(rows),
        base=document,
    )
    if not routes:
        return draft
    rules = tuple(RouteRuleRow(rule["when"], tuple(places[name] for name in rule["to"])) for rule in routes["rules"])
    otherwise = tuple(places[name] for name in routes.get("otherwise", []))
    return replace(draft, mode=routes.get("mode", "first"), rules=rules, otherwise=otherwise)


def _step_rows(steps: Sequence[Mapping[str, Any]]) -> tuple[StepRow, ...]:
    return tuple(map(step_to_row, steps))


def _source_row(name: str, one: Mapping[str, Any]) -> SourceRow:
    kind = one.get("type", "http")
    typed = {field: one.get(field) or "" for field in SOURCE_KINDS[kind] if field != "from"}
    if kind == "penstock":
        typed["events"] = ", ".join(typed["events"])
    return SourceRow(name, name, kind, start=one.get("from", ""), **typed)


def _destination_row(name: str, one: Mapping[str, Any]) -> DestinationRow:
    kind = one.get("type", "http")
    typed: dict[str, Any] = {field: one.get(field) or "" for field in KINDS[kind]}
    if kind == "s3":
        typed["object_format"] = one.get("format", "")
    if kind == "postgres":
        typed |= {"port": str(one.get("port", "")), "key": ", ".join(one.get("key", DEFAULT_KEY))}
        typed["columns"] = column_lines(one.get("columns", DEFAULT_COLUMNS))
    if "compacted" in typed:
        typed["compacted"] = "yes" if typed["compacted"] else ""
    encoding = one.get("encoding") or {}
    typed |= {field: str(encoding.get(field, "")) for field in ("format", "subject", "version")}
    return replace(DestinationRow(name, name, kind), beginning=one.get("from", ""), **typed)


def _enrich_row(one: Mapping[str, Any]) -> EnrichRow:
    default = one.get("default")
    typed = "" if default is None else json.dumps(default, ensure_ascii=False)
    return EnrichRow(one["table"], one["key"], one["into"], one.get("on_missing", "keep"), typed)


def _document(draft: Draft) -> dict[str, Any]:
    base = copy.deepcopy(dict(draft.base))
    return (base or {"version": 1}) | {
        "sources": {row.name: _source(row, base) for row in draft.sources},
        "normalize": _steps(draft.normalize),
        "enrich": [_enrich(row) for row in draft.enrich if not row.empty],
        "routes": _routes(draft),
        "transform": {row.name: steps for row in draft.destinations if (steps := _steps(row.steps))},
        "destinations": {row.name: _destination(row, base) for row in draft.destinations},
    }


def _refuse_twice(field: str, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise SpecError(f"$.{field}.{name}", "needs a unique name, got one that is used above")


def _source(row: SourceRow, base: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = base.get("sources", {}).get(row.was, {})
    if known.get("type", "http") != row.kind:
        known = {"type": row.kind}
    if row.kind == "table":
        return {"type": "table", "table": row.table, "from": row.start or "now", "prefix": row.prefix}
    if row.kind == "penstock":
        events = [name for typed in row.events.split(",") if (name := typed.strip())]
        return {"type": "penstock"} | ({"events": events} if events else {})
    paths = {name: getattr(row, name).strip() or None for name in SOURCE_PATHS}
    if not paths["sequence"]:  # an absent field, because earlier releases of the data plane refuse it
        del paths["sequence"]
        known = {name: value for name, value in known.items() if name != "sequence"}
    return {"type": row.kind} | known | paths


def _destination(row: DestinationRow, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the destination's document, with fields kept from the base if the kind is the same."""
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
    elif row.kind == "postgres":
        kept = {name: value for name, value in kept.items() if name not in typed}
        typed = _table_of(row, typed)
    elif not typed.get("remove_when", True):
        typed["remove_when"] = None
    if row.format in ENCODING_FORMATS.get(row.kind, ()):
        typed["encoding"] = {"format": row.format, "subject": row.subject.strip(), "version": _number(row.version)}
    if row.kind in STARTS_IN_PAST and row.beginning.strip():
        typed["from"] = row.beginning.strip()
    return {"type": row.kind, **kept, **typed}


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


def _steps(rows: Sequence[StepRow]) -> list[dict[str, Any]]:
    return [row_to_step(row) for row in rows if not row.empty]


def _enrich(row: EnrichRow) -> dict[str, Any]:
    step = {"table": row.table, "key": row.key.strip(), "into": row.into.strip(), "on_missing": row.on_missing}
    return step | ({"default": json_or_text(row.default)} if row.default.strip() else {})


def _routes(draft: Draft) -> dict[str, Any] | None:
    if draft.mode == EVERYTHING:
        return None
    rules = [{"when": row.when.strip(), "to": _names(draft, row.to)} for row in draft.rules if not row.empty]
    return {"mode": draft.mode, "rules": rules, "otherwise": _names(draft, draft.otherwise)}


def _names(draft: Draft, places: Sequence[int]) -> list[str]:
    return [draft.destinations[place].name for place in places if place < len(draft.destinations)]


def _in_order(value: Any) -> Any:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (_READING.index(key) if key in _READING else len(_READING), key))
        return {key: _in_order(value[key]) for key in keys}
    return [_in_order(one) for one in value] if isinstance(value, list) else value
