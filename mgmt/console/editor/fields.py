"""The editor's rows as a template draws them: each field with its name, label, value and error. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mgmt.console.editor.draft import KINDS, DestinationRow, Draft, EnrichRow, RuleRow, SourceRow
from mgmt.console.editor.steps import OPS, StepRow

_PLACE: Final = re.compile(r"^line (\d+), column (\d+): ")
_SLOT_NAMES: Final = "abc"
_TITLES: Final = {"source": "Source", "enrich": "Look-up", "rule": "Rule", "destination": "Destination"}
ON_MISSING: Final = (
    ("keep", "goes on"),
    ("default", "gets a constant"),
    ("dead", "is dead"),
)
DESTINATIONS: Final = (
    ("http", "HTTP endpoint"),
    ("topic", "Kafka topic of its own"),
    ("lake", "lake"),
    ("table", "look-up table"),
)


@dataclass(frozen=True)
class Field:
    """One field. `said` is its whole name for those who do not see where it stands; `pointed` the line and a caret."""

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

    @property
    def pointed(self) -> tuple[str, str] | None:
        """The line of an expression that is at fault, and a caret under the place."""
        found = _PLACE.match(self.error)
        lines = self.value.strip().splitlines()
        if found is None or int(found[1]) > len(lines):
            return None
        return lines[int(found[1]) - 1], " " * (int(found[2]) - 1) + "^"


@dataclass(frozen=True)
class Row:
    """One row of a list. `focus` names the button that was used on it."""

    list: str
    place: int
    title: str
    fields: Sequence[Field]
    hidden: Sequence[tuple[str, str]] = ()
    error: str = ""
    is_first: bool = False
    is_last: bool = False
    focus: str = ""
    extra: Any = None

    @property
    def id(self) -> str:
        """The row's id in the page."""
        return f"{self.list}-{self.place}"


@dataclass(frozen=True)
class Ways:
    """The check boxes of a rule, or of what no rule holds for: (place, name, whether it is chosen)."""

    name: str
    id: str
    choices: Sequence[tuple[int, str, bool]]
    error: str = ""


def source_rows(draft: Draft) -> list[Row]:
    """The sources."""
    return _ended([_source(_Maker(draft, "source", place), row) for place, row in enumerate(draft.sources)])


def step_rows(draft: Draft, of: str, steps: Sequence[StepRow], whose: str = "") -> list[Row]:
    """The steps of a stage."""
    return _ended([_step(_Maker(draft, of, place, whose), row) for place, row in enumerate(steps)])


def enrich_rows(draft: Draft, tables: Sequence[str]) -> list[Row]:
    """The look-ups."""
    return _ended([_enrich(_Maker(draft, "enrich", place), row, tables) for place, row in enumerate(draft.enrich)])


def rule_rows(draft: Draft) -> list[Row]:
    """The rules."""
    return _ended([_rule(_Maker(draft, "rule", place), draft, row) for place, row in enumerate(draft.rules)])


def otherwise(draft: Draft) -> Ways:
    """Where messages go for which no rule holds."""
    return Ways("otherwise", "otherwise", _ways(draft, draft.otherwise), draft.errors.get("otherwise", ""))


def destination_rows(draft: Draft) -> list[Row]:
    """The destinations, each with the rows of its own steps."""
    rows = enumerate(draft.destinations)
    return _ended([_destination(_Maker(draft, "destination", place), draft, row) for place, row in rows])


class _Maker:
    """Makes the fields of one row, and the row."""

    def __init__(self, draft: Draft, of: str, place: int, whose: str = "") -> None:
        self._errors, self._focus, self._of, self.place = draft.errors, draft.focus, of, place
        self._id = f"{of}-{place}"
        self._title = f"{_TITLES.get(of, 'Step')} {place + 1}{whose}"

    def field(self, name: str, label: str, value: str, *, of: str = "", **more: Any) -> Field:
        """A field of the row's list; `of` is its name in the form where that is not its key in the document."""
        id_, said = f"{self._id}-{name}", f"{label} of {self._title[0].lower()}{self._title[1:]}"
        return Field(f"{self._of}.{of or name}", id_, label, said, value, error=self._errors.get(id_, ""), **more)

    def row(self, fields: Sequence[Field], hidden: Mapping[str, str] | None = None, extra: Any = None) -> Row:
        """The row, with values that are kept and not shown."""
        kept = [(f"{self._of}.{name}", value) for name, value in (hidden or {}).items()]
        focus = {self._id: "new", f"{self._id}-up": "up", f"{self._id}-down": "down"}.get(self._focus, "")
        error = self._errors.get(self._id, "")
        return Row(self._of, self.place, self._title, fields, kept, error, focus=focus, extra=extra)


def _ended(rows: Sequence[Row]) -> list[Row]:
    last = len(rows) - 1
    return [replace(row, is_first=not row.place, is_last=row.place == last, focus=_usable(row, last)) for row in rows]


def _usable(row: Row, last: int) -> str:
    """Where the focus goes: a row at its end has one button that can be used."""
    return {("up", 0): "down", ("down", last): "up"}.get((row.focus, row.place), row.focus)


def _source(make: _Maker, row: SourceRow) -> Row:
    fields = [
        make.field("name", "Name", row.name, example="web"),
        make.field("event_time", "Path of the event's time", row.event_time, example="created_at"),
        make.field("key", "Path of the key", row.key, example="customer.id"),
        make.field("id", "Path of the sender's own id", row.id, example="id"),
    ]
    return make.row(fields, {"was": row.was})


def _step(make: _Maker, row: StepRow) -> Row:
    fields = [make.field("op", "Operation", row.op, kind="choice", choices=[(op, op) for op in OPS], redraws=True)]
    hidden = dict(zip(_SLOT_NAMES, row.typed, strict=True))
    for number, slot in row.slots:
        letter = _SLOT_NAMES[number]
        choices = [(one, one) for one in slot.choices]
        more = {"kind": slot.kind, "choices": choices, "example": slot.example}
        fields.append(make.field(slot.key, slot.label, hidden.pop(letter), of=letter, **more))
    return make.row(fields, hidden)


def _enrich(make: _Maker, row: EnrichRow, tables: Sequence[str]) -> Row:
    names = dict.fromkeys([*([row.table] if row.table else []), *tables])
    fields = [
        make.field("table", "Table", row.table, kind="choice", choices=[(name, name) for name in names]),
        make.field("key", "Key of the row", row.key, kind="expression", example="body.customer.id"),
        make.field("into", "Put it at", row.into, example="customer"),
        make.field("on_missing", "Without a row it", row.on_missing, kind="choice", choices=ON_MISSING, redraws=True),
    ]
    if row.on_missing != "default":
        return make.row(fields, {"default": row.default})
    return make.row([*fields, make.field("default", "Constant, as JSON", row.default, kind="json", example="null")])


def _rule(make: _Maker, draft: Draft, row: RuleRow) -> Row:
    when = make.field("when", "When", row.when, kind="expression", example="body.order.total > 100.0")
    id_ = f"rule-{make.place}-to"
    ways = Ways(f"rule-{make.place}.to", id_, _ways(draft, row.to), draft.errors.get(id_, ""))
    return make.row([when], extra=ways)


def _destination(make: _Maker, draft: Draft, row: DestinationRow) -> Row:
    fields = [
        make.field("name", "Name", row.name, example="crm"),
        make.field("kind", "Kind", row.kind, kind="choice", choices=DESTINATIONS, redraws=True),
    ]
    shown = {
        "url": ("URL", "url", "https://example.com/hooks"),
        "table": ("Look-up table", "text", "customers"),
        "key": ("Key of the row", "expression", "body.customer.id"),
        "remove_when": ("Removes the row when (may stay empty)", "expression", "body.deleted"),
    }
    own = KINDS.get(row.kind, ())
    for name in own:
        label, kind, example = shown[name]
        fields.append(make.field(name, label, getattr(row, name), kind=kind, example=example))
    hidden = {"was": row.was} | {name: getattr(row, name) for name in shown if name not in own}
    hidden["test"] = row.test
    return make.row(fields, hidden, step_rows(draft, f"transform-{make.place}", row.steps, f" for {row.name}"))


def _ways(draft: Draft, chosen: Sequence[int]) -> list[tuple[int, str, bool]]:
    return [
        (place, row.name or f"destination {place + 1}", place in chosen) for place, row in enumerate(draft.destinations)
    ]
