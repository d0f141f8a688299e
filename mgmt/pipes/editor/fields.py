"""Rows of the editor for its template: fields with name, label, value and error. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dataplane.spec import BatchLimits, ObjectSettings, RowSettings
from dataplane.spec.postgres import DEFAULT_COLUMNS, DEFAULT_KEY
from mgmt.pipes.editor.destination_row import (
    BATCH_LIMITS,
    ENCODING_FORMATS,
    KINDS,
    ORIGINAL,
    STARTS_IN_PAST,
    TYPED,
    DestinationRow,
    column_lines,
    kept_fields,
)
from mgmt.pipes.editor.draft import SOURCE_PATHS, Draft, EnrichRow, RouteRuleRow, SourceRow
from mgmt.pipes.editor.steps import OPS, StepRow
from mgmt.pipes.execution import STREAMING

_PLACE: Final = re.compile(r"^line (\d+), column (\d+): ")
_SLOT_NAMES: Final = "abc"
_TITLES: Final = {"source": "Source", "enrich": "Look-up", "rule": "Rule", "destination": "Destination"}
ON_MISSING: Final = (
    ("keep", "pass event unchanged"),
    ("default", "use a constant"),
    ("dead", "dead-letter event"),
)
FORMAT_LABELS: Final = {
    "avro": "Avro",
    "confluent": "Avro with Confluent schema id",
    "columns": "JSON and typed columns",
    ORIGINAL: "As received",
}
ORIGINAL_HINT: Final = (
    "Forms and XML are sent as their sender posted them, so that the receiver can verify the sender's signature. "
    "No step may change the body."
)
FORWARDED_HINT: Final = "Names of headers that the source keeps, separated by commas."
BODY_HINT: Final = "An expression; its value is sent as JSON."
BEGINNING_HINT: Final = (
    "Enter earliest, or a time such as 2026-11-20T08:00:00Z: a new destination then also gets the events accepted "
    "since. Has no effect on an existing destination. Leave empty for new events only."
)
SOURCES: Final = (
    ("http", "API key or webhook"),
    ("table", "Changes of a table"),
    ("penstock", "Operational events of your pipes"),
)
KAFKA_SOURCE: Final = ("kafka", "Kafka topic")
STARTS: Final = (("now", "Later changes only"), ("snapshot", "Current rows first, then changes"))
EVENTS_HINT: Final = (
    "Separate several by commas. penstock.alert.* matches all types with that prefix. Leave empty for all types. "
    "Events about this pipe itself are left out."
)
START_HINT: Final = "Applies when the source begins. A source that has begun continues where it stopped."
COMPACTIONS: Final = (("", "Every event, for the retention"), ("yes", "Last event of each key (compacted)"))
REMOVE_HINT: Final = "The key of such an event gets a tombstone: a record without a value."
DESTINATIONS: Final = (
    ("http", "HTTP endpoint"),
    ("topic", "Kafka topic"),
    ("lake", "Lake table"),
    ("table", "Look-up table"),
    ("s3", "S3 bucket"),
    ("postgres", "Postgres table"),
)
OBJECT_FORMATS: Final = (("jsonl", "JSON lines"), ("parquet", "Parquet"))
CONFLICTS: Final = (("ignore", "Keep it (each message once)"), ("update", "Update it (last message of a key)"))
COLUMNS_HINT: Final = (
    "One column on each line, as name: expression. meta.position and meta.child together identify a message."
)
KEY_HINT: Final = "Columns of a unique index, separated by commas. Without a key, a repeated message is a second row."
USER_HINT: Final = "After you publish, enter the password on the page of the destination."
CA_HINT: Final = "If your database has a CA of its own: its certificates as PEM. Leave empty for public CAs."
EXECUTIONS: Final = ((STREAMING, "Streaming (default)"), ("bulk", "Bulk"))
EXECUTION_HINT: Final = (
    "Streaming runs the steps on each event within milliseconds. Bulk runs them in batches and adds about a second: "
    "choose it for large imports with heavy steps on a Spark cluster. Your operator knows if the cell has one."
)
ACCESS_KEY_HINT: Final = "After you publish, enter its secret on the page of the destination."


@dataclass(frozen=True)
class FormField:
    """Form field. `said` is its full accessible name; `pointed` the line with the error, and a caret; `hint` a help."""

    name: str
    id: str
    label: str
    said: str
    value: str
    kind: str = "text"
    choices: Sequence[tuple[str, str]] = ()
    example: str = ""
    error: str = ""
    redraws: bool = False
    hint: str = ""

    @property
    def pointed(self) -> tuple[str, str] | None:
        """The line of an expression with the error, and a caret under the column."""
        found = _PLACE.match(self.error)
        lines = self.value.strip().splitlines()
        if found is None or int(found[1]) > len(lines):
            return None
        return lines[int(found[1]) - 1], " " * (int(found[2]) - 1) + "^"


@dataclass(frozen=True)
class FormRow:
    """Row of a list. `focus` names the button that was used on it."""

    list: str
    place: int
    title: str
    fields: Sequence[FormField]
    hidden: Sequence[tuple[str, str]] = ()
    error: str = ""
    is_first: bool = False
    is_last: bool = False
    focus: str = ""
    extra: Any = None
    note: str = ""

    @property
    def id(self) -> str:
        """Element id of the row."""
        return f"{self.list}-{self.place}"


@dataclass(frozen=True)
class DestinationChoices:
    """Checkboxes of a rule or of `otherwise`: (index, name, selected)."""

    name: str
    id: str
    choices: Sequence[tuple[int, str, bool]]
    error: str = ""


def source_rows(draft: Draft, tables: Sequence[str]) -> list[FormRow]:
    """Return the rows of the sources; `tables` are the names of the tenant's look-up tables."""
    return _ended([_source(_Maker(draft, "source", place), row, tables) for place, row in enumerate(draft.sources)])


def step_rows(draft: Draft, of: str, steps: Sequence[StepRow], whose: str = "") -> list[FormRow]:
    """Return the rows of a stage's steps."""
    return _ended([_step(_Maker(draft, of, place, whose), row) for place, row in enumerate(steps)])


def enrich_rows(draft: Draft, tables: Sequence[str]) -> list[FormRow]:
    """Return the rows of the look-ups."""
    return _ended([_enrich(_Maker(draft, "enrich", place), row, tables) for place, row in enumerate(draft.enrich)])


def rule_rows(draft: Draft) -> list[FormRow]:
    """Return the rows of the rules."""
    return _ended([_rule(_Maker(draft, "rule", place), draft, row) for place, row in enumerate(draft.rules)])


def otherwise(draft: Draft) -> DestinationChoices:
    """Return the destination choices for messages that match no rule."""
    return DestinationChoices(
        "otherwise", "otherwise", _destination_choices(draft, draft.otherwise), draft.errors.get("otherwise", "")
    )


def destination_rows(draft: Draft) -> list[FormRow]:
    """Return the rows of the destinations, each with the rows of its own steps."""
    rows = enumerate(draft.destinations)
    return _ended([_destination(_Maker(draft, "destination", place), draft, row) for place, row in rows])


def execution_field(draft: Draft) -> FormField:
    """Return the choice of what runs the steps."""
    label, error = "Execution", draft.errors.get("execution", "")
    return FormField(
        "execution", "execution", label, label, draft.execution, "choice", EXECUTIONS, error=error, hint=EXECUTION_HINT
    )


class _Maker:
    """Builder of the fields of one row, and of the row."""

    def __init__(self, draft: Draft, of: str, place: int, whose: str = "") -> None:
        self._errors, self._focus, self._of, self.place = draft.errors, draft.focus, of, place
        self._id = f"{of}-{place}"
        self._title = f"{_TITLES.get(of, 'Step')} {place + 1}{whose}"

    def field(self, name: str, label: str, value: str, *, of: str = "", **more: Any) -> FormField:
        """Build a field; `of` is its name in the form if that differs from its key in the document."""
        id_, said = f"{self._id}-{name}", f"{label} of {self._title[0].lower()}{self._title[1:]}"
        return FormField(f"{self._of}.{of or name}", id_, label, said, value, error=self._errors.get(id_, ""), **more)

    def row(
        self, fields: Sequence[FormField], hidden: Mapping[str, str] | None = None, extra: Any = None, note: str = ""
    ) -> FormRow:
        """Build the row; `hidden` values are kept but not shown."""
        kept = [(f"{self._of}.{name}", value) for name, value in (hidden or {}).items()]
        focus = {self._id: "new", f"{self._id}-up": "up", f"{self._id}-down": "down"}.get(self._focus, "")
        error = self._errors.get(self._id, "")
        return FormRow(self._of, self.place, self._title, fields, kept, error, focus=focus, extra=extra, note=note)


def _ended(rows: Sequence[FormRow]) -> list[FormRow]:
    last = len(rows) - 1
    return [replace(row, is_first=not row.place, is_last=row.place == last, focus=_usable(row, last)) for row in rows]


def _usable(row: FormRow, last: int) -> str:
    """Return the button that gets the focus: at either end of the list only one can be used."""
    return {("up", 0): "down", ("down", last): "up"}.get((row.focus, row.place), row.focus)


def _source(make: _Maker, row: SourceRow, tables: Sequence[str]) -> FormRow:
    kinds = (*SOURCES, KAFKA_SOURCE) if row.kind == "kafka" else SOURCES
    fields = [
        make.field("name", "Name", row.name, example="web"),
        make.field("kind", "Type", row.kind, kind="choice", choices=kinds, redraws=True),
    ]
    match row.kind:
        case "table":
            shown = _table_source_fields(make, row, tables)
        case "penstock":
            example = "penstock.alert.*, penstock.pipe.paused"
            shown = [make.field("events", "Event types (optional)", row.events, example=example, hint=EVENTS_HINT)]
        case _:
            shown = _event_fields(make, row)
    used = {field.name.partition(".")[2] for field in shown}
    kept = (*SOURCE_PATHS, "table", "start", "prefix", "events")
    hidden = {name: getattr(row, name) for name in kept if name not in used}
    return make.row([*fields, *shown], {"was": row.was} | hidden)


def _event_fields(make: _Maker, row: SourceRow) -> list[FormField]:
    return [
        make.field("event_time", "Event time path", row.event_time, example="created_at"),
        make.field("key", "Key path", row.key, example="customer.id"),
        make.field("id", "Event id path", row.id, example="id"),
        make.field("sequence", "Sequence path", row.sequence, example="sequence"),
    ]


def _table_source_fields(make: _Maker, row: SourceRow, tables: Sequence[str]) -> list[FormField]:
    names = dict.fromkeys([*([row.table] if row.table else []), *tables])
    choices = [(name, name) for name in names] or [("", "No look-up table yet")]
    return [
        make.field("table", "Look-up table", row.table, kind="choice", choices=choices),
        make.field("from", "Start with", row.start, of="start", kind="choice", choices=STARTS, hint=START_HINT),
        make.field("prefix", "Keys that begin with (optional)", row.prefix, example="eu-"),
    ]


def _step(make: _Maker, row: StepRow) -> FormRow:
    fields = [make.field("op", "Operation", row.op, kind="choice", choices=[(op, op) for op in OPS], redraws=True)]
    hidden = dict(zip(_SLOT_NAMES, row.typed, strict=True))
    for number, slot in row.slots:
        letter = _SLOT_NAMES[number]
        choices = [(one, one) for one in slot.choices]
        more = {"kind": slot.kind, "choices": choices, "example": slot.example}
        fields.append(make.field(slot.key, slot.label, hidden.pop(letter), of=letter, **more))
    return make.row(fields, hidden)


def _enrich(make: _Maker, row: EnrichRow, tables: Sequence[str]) -> FormRow:
    names = dict.fromkeys([*([row.table] if row.table else []), *tables])
    fields = [
        make.field("table", "Table", row.table, kind="choice", choices=[(name, name) for name in names]),
        make.field("key", "Row key", row.key, kind="expression", example="body.customer.id"),
        make.field("into", "Target path", row.into, example="customer"),
        make.field("on_missing", "If no row is found", row.on_missing, kind="choice", choices=ON_MISSING, redraws=True),
    ]
    if row.on_missing != "default":
        return make.row(fields, {"default": row.default})
    return make.row([*fields, make.field("default", "Constant (JSON)", row.default, kind="json", example="null")])


def _rule(make: _Maker, draft: Draft, row: RouteRuleRow) -> FormRow:
    when = make.field("when", "When", row.when, kind="expression", example="body.order.total > 100.0")
    id_ = f"rule-{make.place}-to"
    choices = DestinationChoices(
        f"rule-{make.place}.to", id_, _destination_choices(draft, row.to), draft.errors.get(id_, "")
    )
    return make.row([when], extra=choices)


def _destination(make: _Maker, draft: Draft, row: DestinationRow) -> FormRow:
    fields = [
        make.field("name", "Name", row.name, example="crm"),
        make.field("kind", "Type", row.kind, kind="choice", choices=DESTINATIONS, redraws=True),
    ]
    shown = {
        "url": ("URL", "url", "https://example.com/hooks"),
        "table": ("Look-up table", "text", "customers"),
        "key": ("Row key", "expression", "body.customer.id"),
        "remove_when": ("Remove the row when (optional)", "expression", "body.deleted"),
    }
    if row.kind == "topic":
        fields += _compaction_fields(make, row)
    elif row.kind == "s3":
        fields += _bucket_fields(make, row)
    elif row.kind == "postgres":
        fields += _database_fields(make, row)
    else:
        for name in KINDS.get(row.kind, ()):
            label, kind, example = shown[name]
            fields.append(make.field(name, label, getattr(row, name), kind=kind, example=example))
    if row.kind == "http" and row.body:
        more = {"kind": "expression", "example": "body", "hint": BODY_HINT}
        fields.append(make.field("body", "Body", row.body, **more))
    encoding = _encoding_fields(make, row)
    fields += encoding.values()
    hidden = {name: getattr(row, name) for name in ("format", "subject", "version") if name not in encoding}
    posted = {field.name.partition(".")[2] for field in fields}
    kept = (*TYPED, *BATCH_LIMITS, "object_format", "forward_headers", "body")
    hidden |= {"was": row.was} | {name: getattr(row, name) for name in kept if name not in posted}
    if row.kind in STARTS_IN_PAST:
        about = {"of": "beginning", "example": "earliest", "hint": BEGINNING_HINT}
        fields.append(make.field("from", "Start with earlier events", row.beginning, **about))
    else:
        hidden["beginning"] = row.beginning
    hidden["test"] = row.test
    steps = step_rows(draft, f"transform-{make.place}", row.steps, f" for {row.name}")
    parts = ", ".join(kept_fields(row, draft.base))
    return make.row(fields, hidden, steps, f"Also set: {parts}. Edit as JSON to change." if parts else "")


def _bucket_fields(make: _Maker, row: DestinationRow) -> list[FormField]:
    url = "https://s3.eu-central-1.amazonaws.com/my-bucket"
    key = {"example": "AKIAIOSFODNN7EXAMPLE", "hint": ACCESS_KEY_HINT}
    return [
        make.field("url", "URL of the bucket", row.url, kind="url", example=url),
        make.field("region", "Region", row.region, example="eu-central-1"),
        make.field("access_key_id", "Access key ID", row.access_key_id, **key),
        make.field("prefix", "Prefix of keys (optional)", row.prefix, example="orders/"),
        make.field("object_format", "Format", row.object_format, kind="choice", choices=OBJECT_FORMATS),
        *_batch_fields(make, row, "object", ObjectSettings()),
    ]


def _batch_fields(make: _Maker, row: DestinationRow, unit: str, defaults: BatchLimits) -> list[FormField]:
    """Return the fields of the limits of a batch, which is one object or one statement."""
    labels = (f"Messages per {unit}", f"Bytes per {unit}", "Batch wait in milliseconds")
    return [
        make.field(
            name, f"{label} (optional)", getattr(row, name), kind="number", example=str(getattr(defaults, name)),
            hint=f"Maximum, by default {getattr(defaults, name):,}.",
        )
        for name, label in zip(BATCH_LIMITS, labels, strict=True)
    ]  # fmt: skip


def _database_fields(make: _Maker, row: DestinationRow) -> list[FormField]:
    is_new = not row.columns.strip()
    columns, key = (column_lines(DEFAULT_COLUMNS), ", ".join(DEFAULT_KEY)) if is_new else (row.columns, row.key)
    conflict: dict[str, Any] = {"kind": "choice", "choices": CONFLICTS}
    return [
        make.field("host", "Host", row.host, example="db.example.com"),
        make.field("port", "Port", row.port, kind="number", example="5432"),
        make.field("database", "Database", row.database, example="shop"),
        make.field("user", "User", row.user, example="penstock", hint=USER_HINT),
        make.field("schema", "Schema", row.schema, example="public"),
        make.field("table", "Table", row.table, example="events"),
        make.field(
            "columns", "Columns", columns, kind="expression", example="total: body.order.total", hint=COLUMNS_HINT
        ),
        make.field("key", "Key", key, example="position, child", hint=KEY_HINT),
        make.field("on_conflict", "If a row with this key exists", row.on_conflict, **conflict),
        make.field("ca", "CA certificates (optional)", row.ca, kind="expression", hint=CA_HINT),
        *_batch_fields(make, row, "statement", RowSettings()),
    ]


def _compaction_fields(make: _Maker, row: DestinationRow) -> list[FormField]:
    choice = make.field("compacted", "Records kept", row.compacted, kind="choice", choices=COMPACTIONS, redraws=True)
    if not row.compacted:
        return [choice]
    removes = {"kind": "expression", "example": "body.operation == 'delete'", "hint": REMOVE_HINT}
    return [choice, make.field("remove_when", "Remove the key when (optional)", row.remove_when, **removes)]


def _encoding_fields(make: _Maker, row: DestinationRow) -> dict[str, FormField]:
    """Return the shown fields of the encoding by name; the others are kept as hidden values."""
    formats = ENCODING_FORMATS.get(row.kind, ())
    if not formats:
        return {}
    is_original = row.kind == "http" and row.format == ORIGINAL
    offered = (*formats, ORIGINAL) if row.kind == "http" else formats
    choices = [("", "JSON"), *((one, FORMAT_LABELS[one]) for one in offered)]
    hint = ORIGINAL_HINT if is_original else ""
    choice = make.field("format", "Format", row.format, kind="choice", choices=choices, redraws=True, hint=hint)
    found = {"format": choice}
    if row.kind == "http" and (is_original or row.forward_headers):
        more = {"example": "X-Twilio-Signature", "hint": FORWARDED_HINT}
        found["forward_headers"] = make.field("forward_headers", "Forward headers", row.forward_headers, **more)
    if row.format not in formats:
        return found
    return found | {
        "subject": make.field("subject", "Subject", row.subject, example="orders-value"),
        "version": make.field("version", "Version", row.version, kind="number", example="1"),
    }


def _destination_choices(draft: Draft, chosen: Sequence[int]) -> list[tuple[int, str, bool]]:
    return [
        (place, row.name or f"destination {place + 1}", place in chosen) for place, row in enumerate(draft.destinations)
    ]
