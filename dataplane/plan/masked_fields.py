"""Fields of a received event that a pipe masks: searches do not find their values, and samples do not show them. Pure.

A mask has the path that its value has when the step runs. This module traces it to the path in the event as it was
received, and from there to the paths in what a destination receives. Where that is not exact, more is hidden rather
than less.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from dataplane.plan.expression_fields import fields_read
from dataplane.stages.masks import masker
from dataplane.stages.paths import EACH, WHOLE_BODY

MOST_FIELDS: Final = 200  # of one revision; a pipe that masks more has its whole events hidden
_Path = tuple[str, ...]
_BODY: Final[_Path] = ()


class MaskedField(NamedTuple):
    """Path of a masked value in the received event, and the mask. The path () is the whole event."""

    path: _Path
    how: Literal["redact", "partial"]


WHOLE_EVENT: Final = frozenset({MaskedField(_BODY, "redact")})


def masked_fields(spec: Mapping[str, Any]) -> frozenset[MaskedField]:
    """Return the masked fields of the events of a revision, from its spec document.

    A mask that hashes hides the value: searches do not read the tenant's salt.
    """
    normalize = spec.get("normalize") or []
    parts = [normalize, *([*normalize, *steps] for steps in (spec.get("transform") or {}).values())]
    found = {field for steps in parts for field in _of(steps)}
    if len(found) > MOST_FIELDS:
        return WHOLE_EVENT
    return frozenset(found)


def masked_outputs(
    spec: Mapping[str, Any], destinations: Iterable[str], fields: Iterable[MaskedField]
) -> dict[str, frozenset[MaskedField]]:
    """Return by destination the paths of masked values in what it receives from a revision, from its spec document.

    fields: masked fields of the received event, of this revision or of others
    """
    common = _after([*(spec.get("normalize") or []), *(spec.get("enrich") or [])], frozenset(fields))
    transform = spec.get("transform") or {}
    return {name: _after(transform.get(name) or [], common) for name in destinations}


def hides(fields: Iterable[MaskedField], path: str) -> bool:
    """Return True if the value at a path of the event is masked, or a part of it."""
    wanted = _segments(path)
    return any(_overlap(field.path, wanted) for field in fields)


def hides_all(fields: Iterable[MaskedField]) -> bool:
    """Return True if the whole event is masked."""
    return any(field.path == _BODY for field in fields)


def visible_part(fields: Iterable[MaskedField], path: Sequence[str]) -> int:
    """Return how many names of a path may be shown: those below a masked value are part of it."""
    masked = [field.path for field in fields if _overlap(field.path, tuple(path))]
    return min((len(one) for one in masked if len(one) < len(path)), default=len(path))


def with_masks(value: Any, fields: Iterable[MaskedField]) -> Any:
    """Return a copy of a received event, decoded from JSON, without the masked values; `***` if the whole is masked.

    A value is hidden, too, if it is where an object or array with a masked field is expected.
    """
    return _with_masks(value, [(field.path, field.how) for field in fields])


def masked_text(body: str | bytes, fields: Iterable[MaskedField]) -> str | None:
    """Return a body as JSON with its masked fields hidden; None for a body that is not JSON, which is not shown."""
    try:
        return json.dumps(with_masks(json.loads(body), fields), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _with_masks(value: Any, below: Sequence[tuple[_Path, str]]) -> Any:
    """Mask a value; `below`: the paths from it to the masked values."""
    if here := {how for path, how in below if not path}:
        return masker("partial" if here == {"partial"} else "redact", b"")(value)
    if not below:
        return value
    if isinstance(value, dict):
        return {key: _with_masks(one, _below(below, str(key))) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_masks(one, _below(below, EACH)) for one in value]
    return None if value is None else masker("redact", b"")(value)


def _below(paths: Sequence[tuple[_Path, str]], key: str) -> list[tuple[_Path, str]]:
    """Return the rest of the paths that begin with a key; in an array every index begins with `*`."""
    return [(path[1:], how) for path, how in paths if path[0] in (key, EACH) or key == EACH]


def _of(steps: Sequence[Mapping[str, Any]]) -> Iterable[MaskedField]:
    for number, step in enumerate(steps):
        if step["op"] == "mask":
            how: Literal["redact", "partial"] = "partial" if step.get("how") == "partial" else "redact"
            for path in _traced(_segments(step["path"]), steps[:number]):
                yield MaskedField(path, how)


def _traced(path: _Path, before: Sequence[Mapping[str, Any]]) -> set[_Path]:
    """Return the paths in the received event from which the value at `path` may come after these steps."""
    found = {path}
    for step in reversed(before):
        found |= {source for one in found for source in _sources(one, step)}
        if len(found) > MOST_FIELDS:
            return {_BODY}
    return found


def _sources(path: _Path, step: Mapping[str, Any]) -> Iterable[_Path]:
    """Yield the further paths from which a step may have moved the value, or a part of it, to `path`."""
    match step["op"]:
        case "rename" if _overlap(path, to := _segments(step["to"])):
            yield (*_segments(step["path"]), *path[len(to) :])
        case "map" if _overlap(path, _segments(step["path"])) and "body" in step["expr"]:
            yield _BODY  # any field of the event
        case "explode" if _overlap(path, array := _segments(step["path"])):
            yield (*array, EACH, *path[len(array) :])


def _after(steps: Sequence[Mapping[str, Any]], fields: frozenset[MaskedField]) -> frozenset[MaskedField]:
    """Return the paths of the masked values after some steps."""
    for step in steps:
        fields |= {MaskedField(path, field.how) for field in fields for path in _moved_to(field.path, step)}
        if len(fields) > MOST_FIELDS:
            return WHOLE_EVENT
    return fields


def _moved_to(path: _Path, step: Mapping[str, Any]) -> Iterable[_Path]:
    """Yield the further paths to which a step may move the value at `path`, or a part of it.

    The path itself stays masked: a step that did not find a value leaves it there.
    """
    match step:
        case {"op": "rename"} if _overlap(path, begin := _segments(step["path"])):
            yield (*_segments(step["to"]), *path[len(begin) :])
        case {"op": "map"} if _reads(step["expr"], path):
            yield _segments(step["path"])
        case {"op": "explode"} if _overlap(path, (*(array := _segments(step["path"])), EACH)):
            yield (*array, *path[len(array) + 1 :])
        case {"table": _} if _reads(step["key"], path):
            yield _segments(step["into"])


def _reads(expression: str, path: _Path) -> bool:
    return any(_overlap(path, read) for read in _paths_read(expression))


@lru_cache(maxsize=1_024)  # revisions of a pipe have mostly the same expressions
def _paths_read(expression: str) -> list[_Path]:
    return [tuple(EACH if one.isdecimal() else one for one in path) for path in fields_read(expression)]


def _segments(path: str) -> _Path:
    """Return the segments of a path. An index matches every element, as earlier steps may move the elements."""
    return () if path == WHOLE_BODY else tuple(EACH if one.isdecimal() else one for one in path.split("."))


def _overlap(one: _Path, other: _Path) -> bool:
    """Return True if one path is the other or leads to it; `*` is any element."""
    return all(left == right or EACH in (left, right) for left, right in zip(one, other, strict=False))
