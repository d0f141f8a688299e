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
from mgmt.pipes.editor.destination_row import DestinationRow, destination_document, destination_row
from mgmt.pipes.editor.steps import StepRow, json_or_text, row_to_step, step_to_row
from mgmt.pipes.execution import STREAMING, execution_of
from mgmt.sandbox import checked_spec_of

EVERYTHING: Final = "everything"
_READING: Final = (
    "version", "sources", "normalize", "enrich", "routes", "transform", "destinations", "type", "op", "url", "path",
    "mode", "rules", "when", "to",
)  # fmt: skip
SOURCE_PATHS: Final = ("event_time", "key", "id", "sequence")
# Fields of the sources that the form creates. Those of type kafka are kept, and written as JSON.
SOURCE_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": SOURCE_PATHS, "kafka": SOURCE_PATHS, "table": ("table", "from", "prefix"),
    "penstock": ("events",),
}  # fmt: skip
_SHOWN: Final = frozenset(
    {"version", "sources", "normalize", "enrich", "routes", "transform", "destinations", "execution"}
)


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
    execution: str = STREAMING
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
        replace(destination_row(name, one), steps=_step_rows(transform.get(name, [])))
        for name, one in document["destinations"].items()
    ]
    draft = Draft(
        sources=tuple(_source_row(name, one) for name, one in document["sources"].items()),
        normalize=_step_rows(document.get("normalize", [])),
        enrich=tuple(_enrich_row(one) for one in document.get("enrich", [])),
        destinations=tuple(rows),
        execution=execution_of(document),
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


def _enrich_row(one: Mapping[str, Any]) -> EnrichRow:
    default = one.get("default")
    typed = "" if default is None else json.dumps(default, ensure_ascii=False)
    return EnrichRow(one["table"], one["key"], one["into"], one.get("on_missing", "keep"), typed)


def _document(draft: Draft) -> dict[str, Any]:
    base = copy.deepcopy(dict(draft.base)) or {"version": 1}
    base.pop("execution", None)  # an absent field for streaming, because earlier releases of the data plane refuse it
    if draft.execution != STREAMING:
        base["execution"] = draft.execution
    return base | {
        "sources": {row.name: _source(row, base) for row in draft.sources},
        "normalize": _steps(draft.normalize),
        "enrich": [_enrich(row) for row in draft.enrich if not row.empty],
        "routes": _routes(draft),
        "transform": {row.name: steps for row in draft.destinations if (steps := _steps(row.steps))},
        "destinations": {row.name: destination_document(row, base) for row in draft.destinations},
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
