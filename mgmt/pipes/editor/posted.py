"""Draft from a posted editor form. No database."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from django.http import QueryDict

from dataplane.spec import SpecError
from mgmt.pipes.editor.destination_row import BATCH_LIMITS, DestinationRow, batch_limits
from mgmt.pipes.editor.draft import (
    EVERYTHING,
    SOURCE_KINDS,
    SOURCE_PATHS,
    Draft,
    EnrichRow,
    RouteRuleRow,
    SourceRow,
    fits_form,
    read_object,
)
from mgmt.pipes.editor.steps import StepRow
from mgmt.pipes.execution import execution_of
from mgmt.sandbox import checked_spec_of

_OF_DESTINATION: Final = tuple(field.name for field in fields(DestinationRow) if field.name != "steps")
_OF_SOURCE: Final = ("name", "was", "kind", *SOURCE_PATHS, "table", "start", "prefix", "events")
MODES: Final = (EVERYTHING, "first", "all")


def draft_from_post(post: QueryDict, base: Mapping[str, Any], *, name: str = "") -> Draft:
    """Return the posted draft; `name` is that of an existing pipe, whose form has no name field."""
    common = Draft(
        name=name or post.get("name", "").strip(),
        text=post.get("spec", ""),
        sample=post.get("sample", ""),
        sample_source=post.get("sample_source", ""),
        as_json=post.get("mode") == "json",
        base=base,
    )
    return common if common.as_json else _with_form(common, post)


def _with_form(common: Draft, post: QueryDict) -> Draft:
    mode = post.get("routes", EVERYTHING)
    base = _carried(common.text, common.base)
    rows = enumerate(_rows(post, "destination", *_OF_DESTINATION))
    destinations = [_destination(row, _steps(post, f"transform-{place}")) for place, row in rows]
    if f"destination.{BATCH_LIMITS[0]}" not in post:
        destinations = [_with_known_limits(row, base) for row in destinations]
    return replace(
        common,
        sources=tuple(_source(row, common.base) for row in _rows(post, "source", *_OF_SOURCE)),
        normalize=_steps(post, "normalize"),
        enrich=tuple(EnrichRow(*row) for row in _rows(post, "enrich", "table", "key", "into", "on_missing", "default")),
        mode=mode if mode in MODES else EVERYTHING,
        rules=tuple(
            RouteRuleRow(when, _places(post, f"rule-{place}.to"))
            for place, when in enumerate(post.getlist("rule.when"))
        ),
        otherwise=_places(post, "otherwise"),
        destinations=tuple(destinations),
        execution=post.get("execution", execution_of(base)),  # a page of an earlier release posts none
        base=base,
    )


def _source(row: Sequence[str], base: Mapping[str, Any]) -> SourceRow:
    """Return the row; without a type it has that of the source of the base document."""
    typed = dict(zip(_OF_SOURCE, row, strict=True))
    known = base.get("sources", {}).get(typed["was"], {}).get("type", "http")
    return SourceRow(**typed | {"kind": typed["kind"] if typed["kind"] in SOURCE_KINDS else known})


def _destination(row: Sequence[str], steps: tuple[StepRow, ...]) -> DestinationRow:
    typed = dict(zip(_OF_DESTINATION, row, strict=True))
    return DestinationRow(**typed | {"kind": typed["kind"] or "http"}, steps=steps)


def _with_known_limits(row: DestinationRow, base: Mapping[str, Any]) -> DestinationRow:
    """Return the row with its limits of a batch in the base document: a page of an earlier release posts none."""
    known: dict[str, Any] = base.get("destinations", {}).get(row.was, {})
    return replace(row, **batch_limits(known)) if known.get("type") == row.kind else row


def _rows(post: QueryDict, of: str, *fields: str) -> list[tuple[str, ...]]:
    """Return the rows of a list, each with all of `fields`."""
    columns = [post.getlist(f"{of}.{field}") for field in fields]
    rows = max(map(len, columns))
    return list(zip(*(column + [""] * (rows - len(column)) for column in columns), strict=True))


def _steps(post: QueryDict, of: str) -> tuple[StepRow, ...]:
    return tuple(StepRow(op, (a, b, c)) for op, a, b, c in _rows(post, of, "op", "a", "b", "c"))


def _places(post: QueryDict, name: str) -> tuple[int, ...]:
    return tuple(int(text) for text in post.getlist(name) if text.isascii() and text.isdigit() and len(text) < 4)


def _carried(text: str, stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the base document of the form: the posted text, which may have been edited as JSON, if it is valid."""
    try:
        document = read_object(text)
        checked_spec_of(document)
    except (ValueError, SpecError):
        return stored
    return document if fits_form(document) else stored
