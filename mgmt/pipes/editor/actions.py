"""Actions of the editor's buttons on a draft: add, drop and move rows, `<verb>.<list>.<place>`. Pure."""

from collections.abc import Collection
from dataclasses import replace
from itertools import count
from typing import Any, Final

from mgmt.pipes.destination_presets import DestinationPreset
from mgmt.pipes.editor.destination_row import DestinationRow, destination_row
from mgmt.pipes.editor.draft import Draft, EnrichRow, RouteRuleRow, SourceRow
from mgmt.pipes.editor.steps import StepRow

_OWN_STEPS: Final = "transform-"
_FIELDS: Final = {
    "source": "sources", "normalize": "normalize", "enrich": "enrich", "rule": "rules", "destination": "destinations",
}  # fmt: skip
_NEW: Final = {
    "source": SourceRow(), "normalize": StepRow(), "enrich": EnrichRow(), "rule": RouteRuleRow(),
    "destination": DestinationRow(),
}  # fmt: skip
_MOST_ROWS: Final = 100


def apply_action(draft: Draft, action: str) -> Draft:
    """Return the draft after a button press; unchanged if the row does not exist."""
    verb, _, rest = action.partition(".")
    of, _, place = rest.partition(".")
    known = of in _FIELDS or _owner(draft, of) is not None
    row = _number_of(place)
    if verb == "add":
        return _add(draft, of) if known else draft
    return draft if row is None or not known else _change(draft, verb, of, row)


def with_url(draft: Draft, action: str, url: str) -> Draft:
    """Return the draft after `echo.destination.<place>` with `url` filled in; unchanged if the row does not exist."""
    place = place_of(draft, action, "echo")
    return draft if place is None else with_destination(draft, place, replace(draft.destinations[place], url=url))


def with_preset(draft: Draft, preset: DestinationPreset) -> Draft:
    """Return the draft with a destination that a preset fills in; it takes the place of the only one if that is empty.

    The base document keeps what the form does not show. A URL that each customer has of its own is left empty.
    """
    rows = draft.destinations
    if len(rows) >= _MOST_ROWS:
        return draft
    if len(rows) == 1 and rows[0] == DestinationRow(rows[0].name):
        rows = ()
    taken = {row.name for row in rows} | set(draft.base.get("destinations", {}))
    name = preset.name if preset.name not in taken else _free_name(preset.name, taken)
    row = destination_row(name, preset.document)
    if preset.url_is_own:
        row = replace(row, url="")
    base: dict[str, Any] = {"version": 1, "sources": {"web": {"type": "http"}}} | dict(draft.base)
    base["destinations"] = {**base.get("destinations", {}), name: dict(preset.document)}
    return replace(draft, destinations=(*rows, row), base=base, focus=f"destination-{len(rows)}")


def place_of(draft: Draft, action: str, verb: str) -> int | None:
    """Return the index of the destination in `<verb>.destination.<place>`, or None."""
    place = action.removeprefix(f"{verb}.destination.")
    row = None if place == action else _number_of(place)
    return row if row is not None and row < len(draft.destinations) else None


def with_destination(draft: Draft, place: int, row: DestinationRow) -> Draft:
    """Return the draft with the destination at index `place` replaced."""
    return replace(draft, destinations=(*draft.destinations[:place], row, *draft.destinations[place + 1 :]))


def _add(draft: Draft, of: str) -> Draft:
    rows = _rows(draft, of)
    if len(rows) >= _MOST_ROWS:
        return draft
    row = _NEW.get(of, StepRow())
    if isinstance(row, SourceRow | DestinationRow):
        row = replace(row, name=_free_name(of, {one.name for one in rows}))
    added = _with_rows(draft, of, [*rows, row])
    if of == "rule" and draft.mode not in ("first", "all"):
        added = replace(added, mode="first")
    return replace(added, focus=f"{of}-{len(rows)}")


def _free_name(of: str, taken: Collection[str]) -> str:
    return next(name for number in count(len(taken) + 1) if (name := f"{of}-{number}") not in taken)


def _change(draft: Draft, verb: str, of: str, place: int) -> Draft:
    rows = _rows(draft, of)
    if place >= len(rows):
        return draft
    if verb == "drop":
        if of == "destination":
            draft = _without_destination(draft, place)
        return _with_rows(draft, of, rows[:place] + rows[place + 1 :])
    there = place + {"up": -1, "down": 1}.get(verb, 0)
    if there == place or not 0 <= there < len(rows):
        return draft
    rows[place], rows[there] = rows[there], rows[place]
    return replace(_with_rows(draft, of, rows), focus=f"{of}-{there}-{verb}")


def _rows(draft: Draft, of: str) -> list[Any]:
    owner = _owner(draft, of)
    return list(getattr(draft, _FIELDS[of]) if owner is None else draft.destinations[owner].steps)


def _with_rows(draft: Draft, of: str, rows: list[Any]) -> Draft:
    owner = _owner(draft, of)
    if owner is None:
        changed: dict[str, Any] = {_FIELDS[of]: tuple(rows)}
        return replace(draft, **changed)
    destinations = list(draft.destinations)
    destinations[owner] = replace(destinations[owner], steps=tuple(rows))
    return replace(draft, destinations=tuple(destinations))


def _owner(draft: Draft, of: str) -> int | None:
    """Return the index of the destination that owns this list of steps, or None."""
    row = _number_of(of.removeprefix(_OWN_STEPS)) if of.startswith(_OWN_STEPS) else None
    return row if row is not None and row < len(draft.destinations) else None


def _number_of(place: str) -> int | None:
    """Parse a row index; None if invalid. Python parses no number of more than 4,300 digits."""
    return int(place) if place.isascii() and place.isdecimal() and len(place) < 4 else None


def _without_destination(draft: Draft, gone: int) -> Draft:
    """Remove a destination from all rules; rules refer to destinations by index, so later ones move up."""

    def moved(places: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place - (place > gone) for place in places if place != gone)

    rules = tuple(replace(rule, to=moved(rule.to)) for rule in draft.rules)
    return replace(draft, rules=rules, otherwise=moved(draft.otherwise))
