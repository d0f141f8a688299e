"""Mapping of spec errors to fields of the editor. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from dataplane.spec.names import NAME_PATTERN
from mgmt.pipes.editor.draft import DestinationRow, Draft, SourceRow

WHOLE: Final = ""
URL_NEEDED: Final = "Enter a URL that begins with https:// or http://"
_TYPE: Final = re.compile(r"^Expected `(\w+)(?: \| null)?`(?: of length >= (\d+))?(?:, got `\w+`)?")
_TYPES: Final = {
    "str": "Enter text",
    "int": "Enter a whole number",
    "float": "Enter a number",
    "bool": "Enter true or false",
    "array": "Enter a list",
    "object": "Enter a JSON object",
}
_LISTED: Final = re.compile(r"^\$\.(normalize|enrich|routes\.rules)\[(\d+)\](?:\.(\w+))?")
_OWN_STEP: Final = re.compile(r"^\$\.transform\.([^\s.\[]+)\[(\d+)\](?:\.(\w+))?")
_NAMED: Final = re.compile(r"^\$\.(source|destination)s(?:\.([^\s.\[]+))?(?:\.(.+))?$")
_LISTS: Final = {"normalize": "normalize", "enrich": "enrich", "routes.rules": "rule"}
_PLAIN: Final = {"$.routes.otherwise": "otherwise", "$.routes.rules": "rules", "name": "name", "source": "sample"}
_PLACES: Final = (
    (re.compile(r"^normalize\[(\d+)\] "), "step {0}, "),
    (re.compile(r"^transform\.([^\s\[]+)\[(\d+)\] "), "step {0} of {1}, "),
    (re.compile(r"^enrich\[(\d+)\] "), "look-up {0}, "),
    (re.compile(r"^routes\.rules\[(\d+)\]\.when: "), "rule {0}: "),
)
_OWN_FIELDS: Final = ("event_time", "key", "id", "url", "table", "remove_when")


def in_words(path: str, reason: str) -> str:
    """Return a reason without the type names of the parser: "Enter a URL", not "Expected `str` of length >= 8"."""
    if reason.startswith("Invalid enum value"):
        return "Choose one of the values"
    found = _TYPE.match(reason)
    if found is None:
        return reason
    if path.endswith(".url"):
        return URL_NEEDED
    if path in ("$.destinations", "$.sources"):
        return "Add at least one"
    return "Enter a value" if found[2] else _TYPES.get(found[1], "Enter another value")


def place_in_words(detail: str) -> str:
    """Return the detail of a failure with its place in words: "step 1, cast total" for `normalize[0] cast total`."""
    for pattern, words in _PLACES:
        if found := pattern.match(detail):
            *names, number = found.groups()
            return words.format(int(number) + 1, *names) + detail[found.end() :]
    return detail


def with_missing(draft: Draft) -> Draft:
    """Return the draft with an error at each field of the form that must not be empty, before its other errors."""
    if draft.as_json:
        return draft if draft.name else replace(draft, errors={"name": "Enter a name"} | dict(draft.errors))
    missing = {} if draft.name else {"name": "Enter a name"}
    named: Sequence[tuple[str, Sequence[SourceRow | DestinationRow]]] = (
        ("source", draft.sources),
        ("destination", draft.destinations),
    )
    for of, rows in named:
        for place, row in enumerate(rows):
            if not row.name.strip():
                missing[f"{of}-{place}-name"] = "Enter a name"
            if isinstance(row, DestinationRow) and row.kind == "http" and not row.url.strip():
                missing[f"{of}-{place}-url"] = URL_NEEDED
    rest = {place: words for place, words in draft.errors.items() if place not in missing}
    return replace(draft, errors=missing | rest) if missing else draft


def with_error(draft: Draft, path: str, reason: str) -> Draft:
    """Return the draft with a spec error at its field; in JSON mode at the text."""
    reason = in_words(path, reason)
    if draft.as_json and path.startswith("$"):
        return replace(draft, errors={"spec": f"{path}: {reason}"})
    if path == "$.routes.rules":
        reason = "needs a rule with a condition and a destination"
    place, rest = _field(draft, path)
    return replace(draft, errors={place: f"{rest}: {reason}" if rest else reason})


def _field(draft: Draft, path: str) -> tuple[str, str]:
    """Return (field id, rest of the path that the field does not cover)."""
    if path in _PLAIN:
        return _PLAIN[path], ""
    if found := _LISTED.match(path):
        of = _LISTS[found[1]]
        rows: Sequence[Any] = {"normalize": draft.normalize, "enrich": draft.enrich, "rule": draft.rules}[of]
        return _of_row(of, rows, int(found[2]), found[3])
    if found := _OWN_STEP.match(path):
        owner = _place_named(draft.destinations, found[1])
        return _of_row(f"transform-{owner}", draft.destinations[owner].steps, int(found[2]), found[3])
    if found := _NAMED.match(path):
        return _of_named(draft, found[1], found[2], found[3] or "")
    return WHOLE, path


def _of_row(of: str, rows: Sequence[Any], number: int, field: str | None) -> tuple[str, str]:
    """Return the id of a row's field. Empty rows are not in the document, so indexes are mapped."""
    places = [place for place, row in enumerate(rows) if not row.empty]
    place = places[number] if number < len(places) else 0
    return f"{of}-{place}" + (f"-{field}" if field else ""), ""


def _of_named(draft: Draft, of: str, name: str | None, field: str) -> tuple[str, str]:
    rows: Sequence[Any] = draft.sources if of == "source" else draft.destinations
    if not name:
        bad = (place for place, row in enumerate(rows) if not NAME_PATTERN.search(row.name))
        return f"{of}-{next(bad, 0)}-name", ""
    place = _place_named(rows, name)
    return (f"{of}-{place}-{field}", "") if field in _OWN_FIELDS else (f"{of}-{place}-name", field)


def _place_named(rows: Sequence[Any], name: str) -> int:
    """Return the index of the last row with this name: of two duplicates, the later one gets the error."""
    return max((place for place, row in enumerate(rows) if row.name == name), default=0)
