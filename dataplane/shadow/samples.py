"""Samples of units that are not equal, with masked values, and the names of their fields. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.plan import StageError
from dataplane.plan.masked_fields import MaskedField, visible_part, with_masks
from dataplane.plan.stage import decode
from dataplane.shadow.comparison import ComparedUnit
from dataplane.shadow.differences import MOST_DIFFERENCES, differences
from dataplane.stages.masks import masker
from dataplane.stages.paths import MISSING, Segments, get
from dataplane.tables.shadows import (
    MOST_SAMPLE_FIELDS,
    MOST_SAMPLES,
    MOST_VALUE_CHARS,
    OTHER_FIELDS,
    FieldDifference,
    ShadowSample,
    UnitKind,
)

Masks = Mapping[str, Collection[MaskedField]]  # by destination, the masked values in its bodies
MOST_PATH_CHARS: Final = 200
ANY_DESTINATION: Final = ""  # of Masks: for destinations that no known revision has
_encode = msgspec.json.Encoder(decimal_format="number").encode
_redact = masker("redact", b"")


class BodyPair(NamedTuple):
    """Bodies of a unit as JSON, None for a side that does not send it; `is_json` is False if one is not JSON."""

    live: Any
    shadow: Any
    is_json: bool


def read_pair(live: bytes | None, shadow: bytes | None) -> BodyPair:
    """Decode the bodies of both sides."""
    try:
        values = [None if body is None else decode(body) for body in (live, shadow)]
        return BodyPair(values[0], values[1], is_json=True)
    except StageError:
        return BodyPair(live, shadow, is_json=False)


def has_same_body(live: bytes, shadow: bytes) -> bool:
    """Return True if both bodies are the same JSON value; bodies that are not JSON are compared by their bytes."""
    if live == shadow:
        return True
    pair = read_pair(live, shadow)
    return pair.is_json and not differences(pair.live, pair.shadow)


def field_names(unit: ComparedUnit, masks: Masks) -> list[str]:
    """Return the paths of the fields in which the bodies of both sides differ; OTHER_FIELDS for those beyond a limit.

    The names below a masked value are part of it and left out.
    """
    pair = read_pair(unit.live, unit.shadow)
    if not pair.is_json:
        return [OTHER_FIELDS]
    found = differences(pair.live, pair.shadow)
    fields = masks_of(masks, unit.destination)
    names = dict.fromkeys(_text_of_path(_visible(one.path, fields)) for one in found)
    if len(found) == MOST_DIFFERENCES:
        names[OTHER_FIELDS] = None
    return list(names)


def sample_of(unit: ComparedUnit, position: int, masks: Masks) -> ShadowSample:
    """Return a unit as a sample, without masked values."""
    found: list[FieldDifference] = []
    if unit.kind == "different":
        pair, fields = read_pair(unit.live, unit.shadow), masks_of(masks, unit.destination)
        found = _json_fields(pair, fields) if pair.is_json else [_raw_field(pair, fields)]
    return ShadowSample(unit.kind, unit.destination, position, unit.child, found, unit.reason)


def newest(samples: Iterable[ShadowSample]) -> list[ShadowSample]:
    """Return the last MOST_SAMPLES of each kind and destination, in their order."""
    kept: list[ShadowSample] = []
    counts: dict[tuple[UnitKind, str], int] = {}
    for sample in reversed(list(samples)):
        key = (sample.kind, sample.destination)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= MOST_SAMPLES:
            kept.append(sample)
    return kept[::-1]


def masks_of(masks: Masks, destination: str) -> Collection[MaskedField]:
    """Return the masked values in the bodies of a destination."""
    return masks.get(destination, masks.get(ANY_DESTINATION, ()))


def _json_fields(pair: BodyPair, fields: Collection[MaskedField]) -> list[FieldDifference]:
    live, shadow = (with_masks(side, fields) if fields else side for side in (pair.live, pair.shadow))
    found: dict[Segments, FieldDifference] = {}
    for one in differences(pair.live, pair.shadow):
        path = _visible(one.path, fields)
        texts = [_text(get(side, path)) for side in (live, shadow)]
        found.setdefault(path, FieldDifference(_text_of_path(path), *texts))
        if len(found) == MOST_SAMPLE_FIELDS:
            break
    return list(found.values())


def _visible(path: Segments, fields: Collection[MaskedField]) -> Segments:
    return path[: visible_part(fields, _pattern(path))] if fields else path


def _text_of_path(path: Segments) -> str:
    """Return a path as text, without its last names if it is longer than the path of a step may be."""
    text = ".".join(path)
    while len(text) > MOST_PATH_CHARS:
        text = text.rpartition(".")[0]
    return text


def _pattern(path: Segments) -> Segments:
    """Return a path as masked fields name it: every index of an array is `*`."""
    return tuple("*" if one.isdecimal() else one for one in path)


def _raw_field(pair: BodyPair, fields: Collection[MaskedField]) -> FieldDifference:
    """Return the difference of bodies of which one is not JSON: hidden if anything is masked."""
    texts = [
        _text(_redact(body) if fields else body.decode(errors="replace")) if isinstance(body, bytes) else None
        for body in (pair.live, pair.shadow)
    ]
    return FieldDifference(OTHER_FIELDS, *texts)


def _text(value: Any) -> str | None:
    if value is MISSING:
        return None
    try:
        return _encode(value)[: 4 * MOST_VALUE_CHARS].decode(errors="ignore")[:MOST_VALUE_CHARS]
    except (RecursionError, msgspec.EncodeError, UnicodeEncodeError):
        return _encode(_redact(value)).decode()
