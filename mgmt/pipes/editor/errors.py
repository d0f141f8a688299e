"""Mapping of spec errors to fields of the editor. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from dataplane.spec.names import NAME_PATTERN
from mgmt.pipes.editor.destination_row import BATCH_LIMITS, TYPED, DestinationRow
from mgmt.pipes.editor.draft import SOURCE_KINDS, Draft, SourceRow

WHOLE: Final = ""
URL_NEEDED: Final = "Enter a URL that begins with https:// or http://"
NEEDED: Final = {
    "url": URL_NEEDED,
    "region": "Enter a region",
    "access_key_id": "Enter an access key ID",
    "host": "Enter a host name",
    "database": "Enter a database",
    "user": "Enter a user",
    "table": "Enter a table",
}
_TYPE: Final = re.compile(
    r"^Expected `(?P<type>\w+)(?: \| null)?`"
    r"(?: of length (?P<length><=|>=) (?P<many>\d+)| (?P<bound><=|>=|<|>) (?P<limit>[\d.]+))?"
)
_TYPES: Final = {
    "str": "Enter text",
    "int": "Enter a whole number",
    "float": "Enter a number",
    "bool": "Enter true or false",
    "array": "Enter a list",
    "object": "Enter a JSON object",
}
_BOUNDS: Final = {"<=": "up to", ">=": "from", "<": "below", ">": "above"}
_FIELDS: Final = (
    (re.compile(r"\.url$"), URL_NEEDED),
    (re.compile(r"^\$\.(?:destinations|sources)$"), "Add at least one"),
    (re.compile(r"\]\.to$|\.otherwise$"), "Choose at least one destination"),
    (re.compile(r"\.share$"), "Enter a number above 0 and up to 1"),
    (re.compile(r"\.(?:when|expr|key|remove_when)$"), "Enter an expression"),
)
_LOOKUP: Final = re.compile(r"^\$\.(?:enrich\[\d+\]|sources\.[^.]+)\.table$")
_NO_NAME: Final = re.compile(r"^needs names of 1-40 .*|^needs 1-40 of a-z.*", re.DOTALL)
_NAME_NEEDED: Final = "Use 1 to 40 characters of a-z, 0-9 and -, such as crm"
# Beginnings of the reasons that a spec's checks report, with the field's text instead; the rest follows.
_REASONS: Final = (
    (_NO_NAME, _NAME_NEEDED),
    (re.compile(r"^needs names separated by dots"), "Enter a path: names separated by dots"),
    (re.compile(r"^needs an absolute http or https URL with a host"), URL_NEEDED),
    (re.compile(r"^needs a URL, got one that does not parse"), "This is not a valid URL"),
    (re.compile(r"^needs a unique name, got one that is used above"), "Enter another name: this one is used above"),
    (re.compile(r"^needs one of your look-up tables, got .*"), "Choose one of your look-up tables"),
    (re.compile(r"^needs a subject of your schema registry, got .*"), "Enter a subject of your schema registry"),
    (re.compile(r"^must be omitted for a cast to .*"), "Leave this empty: only money has a currency"),
    (re.compile(r"^(?:Invalid enum value|Invalid value) .*"), "Choose one of the values"),
    (re.compile(r"^needs https$"), "Enter a URL that begins with https://"),
    (re.compile(r"^needs JSON"), "Enter valid JSON"),
    (
        re.compile(r"^needs streaming: the destination (\S+) keeps the order of each key"),
        r"Choose Streaming: \1 keeps the order of each key, which Bulk does not",
    ),
    (re.compile(r"^must "), "Must "),
    (re.compile(r"^needs "), "Enter "),
)
_LISTED: Final = re.compile(r"^\$\.(normalize|enrich|routes\.rules)\[(\d+)\](?:\.(\w+))?")
_OWN_STEP: Final = re.compile(r"^\$\.transform\.([^\s.\[]+)\[(\d+)\](?:\.(\w+))?")
_NAMED: Final = re.compile(r"^\$\.(source|destination)s(?:\.([^\s.\[]+))?(?:\.(.+))?$")
_LISTS: Final = {"normalize": "normalize", "enrich": "enrich", "routes.rules": "rule"}
_PLAIN: Final = {
    "$.routes.otherwise": "otherwise",
    "$.routes.rules": "rules",
    "$.execution": "execution",
    "name": "name",
    "source": "sample",
}
_PLACES: Final = (
    (re.compile(r"^normalize\[(\d+)\] "), "step {0}, "),
    (re.compile(r"^transform\.([^\s\[]+)\[(\d+)\] "), "step {0} of {1}, "),
    (re.compile(r"^enrich\[(\d+)\] "), "look-up {0}, "),
    (re.compile(r"^routes\.rules\[(\d+)\]\.when: "), "rule {0}: "),
)
_PARTS: Final = (
    "",
    "name",
    "sample",
    "spec",
    "source",
    "normalize",
    "enrich",
    "rule",
    "rules",
    "otherwise",
    "destination",
    "execution",
)
_OWN_FIELDS: Final = frozenset({*chain(*SOURCE_KINDS.values()), *TYPED, "forward_headers", "from"})
_FIELD_OF: Final = {
    "encoding": "format",
    "original_body": "format",
    "template.body": "body",
    **{f"encoding.{name}": name for name in ("format", "subject", "version")},
    **{f"batch.{name}": name for name in BATCH_LIMITS},
}


@dataclass(frozen=True)
class ErrorSummary:
    """Errors of a draft in one line: "1 error in route", the id of the first element with an error, and that error."""

    words: str
    target: str
    first: str


def in_words(path: str, reason: str) -> str:
    """Return a reason without the type names of the parser: "Enter a URL", not "Expected `str` of length >= 8"."""
    if _LOOKUP.match(path) and _NO_NAME.match(reason):
        return "Choose a look-up table"
    if found := _TYPE.match(reason):
        return _wrong_type(path, found)
    for pattern, words in _REASONS:
        if pattern.match(reason):
            return pattern.sub(words, reason, count=1)
    return reason


def _wrong_type(path: str, found: re.Match[str]) -> str:
    if found["length"] == "<=":
        return f"Enter at most {int(found['many']):,} {'characters' if found['type'] == 'str' else 'values'}"
    if known := next((words for pattern, words in _FIELDS if pattern.search(path)), ""):
        return known
    words = _TYPES.get(found["type"], "Enter another value")
    if found["bound"]:
        return f"{words} {_BOUNDS[found['bound']]} {float(found['limit']):g}"
    return "Enter a value" if found["length"] else words


def error_summary(draft: Draft) -> ErrorSummary | None:
    """Return the summary of a draft's errors in the order of the page, None without errors."""
    places = ordered_errors(draft)
    if not places:
        return None
    parts = list(dict.fromkeys(part for part in (_part_of(draft, place) for place in places) if part))
    words = f"{len(places)} error{'' if len(places) == 1 else 's'}" + (f" in {_listed(parts)}" if parts else "")
    return ErrorSummary(words, target_of(places[0]), draft.errors[places[0]])


def ordered_errors(draft: Draft) -> list[str]:
    """Return the places of the errors in the order of the page."""
    return sorted((place for place in draft.errors if draft.errors[place]), key=_order)


def first_target(draft: Draft) -> str:
    """Return the id of the element with the first error of the page, "" without errors."""
    return next((target_of(place) for place in ordered_errors(draft)), "")


def target_of(place: str) -> str:
    """Return the id of the element that gets the focus for an error."""
    return {"": "whole-error", "rules": "routes"}.get(place, place)


def _order(place: str) -> tuple[int, int, int]:
    """Return the position of a field on the page: its part, its row, and the row of a destination's own step."""
    kind, _, rest = place.replace("transform-", "destination-").partition("-")
    numbers = [int(part) for part in rest.split("-") if part.isdecimal()]
    row, step = [*numbers, -1, -1][:2]
    return (_PARTS.index(kind) if kind in _PARTS else len(_PARTS), row, step)


def _part_of(draft: Draft, place: str) -> str:
    """Return the name of the part of the page that a field is in."""
    kind, _, rest = place.partition("-")
    if kind in ("destination", "transform"):
        row = int(rest.partition("-")[0])
        name = draft.destinations[row].name.strip() if row < len(draft.destinations) else ""
        return name[:40] or f"destination {row + 1}"
    return {"sample": "the sample event", "source": "sources", "rule": "route", "rules": "route", "otherwise": "route",
            "spec": "the spec", "name": "the name"}.get(kind, kind)  # fmt: skip


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


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
            if isinstance(row, DestinationRow):
                missing |= {f"{of}-{place}-{name}": NEEDED[name] for name in row.missing}
    rest = {place: words for place, words in draft.errors.items() if place not in missing}
    return replace(draft, errors=missing | rest) if missing else draft


def with_error(draft: Draft, path: str, reason: str) -> Draft:
    """Return the draft with a spec error at its field; in JSON mode at the text."""
    reason = in_words(path, reason)
    if draft.as_json and path.startswith("$"):
        return replace(draft, errors={"spec": f"{path}: {reason}"})
    if path == "$.routes.rules":
        reason = "Add a rule with a condition and a destination"
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
    return WHOLE, path.removeprefix("$").removeprefix(".")


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
    if field == "type" and of == "destination":
        return f"{of}-{place}-kind", ""
    if field.startswith("events[") and of == "source":
        return f"{of}-{place}-events", ""
    if field.startswith("columns.") and of == "destination":
        return f"{of}-{place}-columns", field.removeprefix("columns.")
    if field in _FIELD_OF and of == "destination":
        return f"{of}-{place}-{_FIELD_OF[field]}", ""
    return (f"{of}-{place}-{field}", "") if field in _OWN_FIELDS else (f"{of}-{place}-name", field)


def _place_named(rows: Sequence[Any], name: str) -> int:
    """Return the index of the last row with this name: of two duplicates, the later one gets the error."""
    return max((place for place, row in enumerate(rows) if row.name == name), default=0)
