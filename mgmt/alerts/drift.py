"""Details of alerts about numeric drift, and their words. Pure."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from mgmt.patterns.numbers import QUANTILES, NumberDrift, NumberRange

MOST_FIELDS: Final = 5  # of an alert with their distributions, those that changed most
_MEDIAN: Final = QUANTILES.index(0.5)
Field = Mapping[str, Any]  # one of the `fields` of an alert's details


class DriftingField(Struct, frozen=True):
    """Numeric field whose values have drifted. `since`: when its first unusual window began."""

    source: str
    path: str
    since: datetime
    drift: NumberDrift


def drift_details(fields: Collection[DriftingField]) -> dict[str, Any]:
    """Return the details of an alert about these fields; `more` counts those beyond MOST_FIELDS."""
    ordered = sorted(fields, key=lambda one: (-one.drift.index, one.source, one.path))
    return {"fields": [_details(one) for one in ordered[:MOST_FIELDS]], "more": max(0, len(ordered) - MOST_FIELDS)}


def without_field(details: Mapping[str, Any], source: str, path: str) -> dict[str, Any]:
    """Return the details without one field."""
    kept = [one for one in details["fields"] if (one["source"], one["field"]) != (source, path)]
    return {**details, "fields": kept}


class DriftTable(Struct, frozen=True):
    """Both distributions of a field, for pages.

    quantiles: of each its name, the usual value and the value now
    ranges:    of each its words, the usual share and the share now, in percent, and the lengths of their bars
    """

    source: str
    path: str
    words: str
    index: str
    values: int
    basis: str
    quantiles: Sequence[tuple[str, str, str]]
    ranges: Sequence[tuple[str, float, float, int, int]]


def drift_tables(details: Mapping[str, Any]) -> list[DriftTable]:
    """Return the distributions in an alert's details."""
    return [_table(one) for one in details["fields"]]


def range_words(low: float | None, high: float | None) -> str:
    """Return a range of values in words."""
    if low is None:
        return f"below {number_words(high or 0)}"
    if high is None:
        return f"above {number_words(low)}"
    first, last = number_words(low), number_words(high)
    return first if first == last else f"{first} to {last}"


def number_words(value: float) -> str:
    """Format a number with three significant digits, in which sketches know it."""
    rounded = float(f"{value:.3g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e15:
        return f"{rounded:g}"
    text = f"{rounded:.10f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _details(field: DriftingField) -> dict[str, Any]:
    drift = field.drift
    names = [f"p{round(100 * q)}" for q in QUANTILES]
    return {
        "source": field.source,
        "field": field.path,
        "since": field.since.isoformat(),
        "words": _words(field),
        "stability_index": round(drift.index, 3),
        "threshold": round(drift.limit, 3),
        "basis": drift.basis,
        "values": drift.values,
        "usual_values": drift.usual_values,
        "quantiles": dict(zip(names, drift.now, strict=True)),
        "usual_quantiles": dict(zip(names, drift.usual, strict=True)),
        "ranges": [
            {
                "low": one.low,
                "high": one.high,
                "percent": round(100 * one.now, 1),
                "usual_percent": round(100 * one.usual, 1),
            }
            for one in _shown(drift.ranges)
        ],
    }


def _table(one: Field) -> DriftTable:
    most = max(max(part["percent"], part["usual_percent"]) for part in one["ranges"]) or 1
    before, after = one["usual_quantiles"], one["quantiles"]
    return DriftTable(
        one["source"],
        one["field"],
        one["words"],
        f"{one['stability_index']:.2f}, above {one['threshold']:.2f}",
        one["values"],
        one["basis"],
        [
            ("Median" if name == "p50" else name, number_words(before[name]), number_words(after[name]))
            for name in before
        ],
        [
            (
                range_words(part["low"], part["high"]),
                part["usual_percent"],
                part["percent"],
                round(100 * part["usual_percent"] / most),
                round(100 * part["percent"] / most),
            )
            for part in one["ranges"]
        ],
    )


def _shown(ranges: Sequence[NumberRange]) -> list[NumberRange]:
    return [one for one in ranges if one.now or one.usual]


def _words(field: DriftingField) -> str:
    drift = field.drift
    most = max(drift.ranges, key=lambda one: one.now - one.usual)
    return (
        f"{field.path} of source {field.source}: median {number_words(drift.now[_MEDIAN])}, usually "
        f"{number_words(drift.usual[_MEDIAN])} {drift.basis}; {_percent(most.now)} of the values are "
        f"{_at(most)}, usually {_percent(most.usual)}"
    )


def _at(one: NumberRange) -> str:
    words = range_words(one.low, one.high)
    return words if None in (one.low, one.high) or " to " not in words else f"from {words}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
