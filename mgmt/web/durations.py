"""Durations as typed by people: `24 h`, `90 min`, `3 d`, `45 s`. Pure."""

import re
from typing import Final

from django import forms

_UNITS: Final = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400}
_TYPED: Final = re.compile(r"(\d{1,7})\s*(s|min|m|h|d)?")
NEEDS: Final = "needs a number with s, min, h or d, such as 24 h"


def typed_duration(span_s: int) -> str:
    """Format seconds in the largest unit that divides them evenly."""
    for unit in ("d", "h", "min"):
        if span_s >= _UNITS[unit] and not span_s % _UNITS[unit]:
            return f"{span_s // _UNITS[unit]} {unit}"
    return f"{span_s} s"


def duration_s(text: str) -> int:
    """Parse a duration into seconds; a bare number means seconds. Raises ValueError for anything else."""
    found = _TYPED.fullmatch(text.strip().lower())
    if not found:
        raise ValueError(NEEDS)
    return int(found[1]) * _UNITS[found[2] or "s"]


class DurationField(forms.CharField):
    """Text field whose value is a number of seconds."""

    def to_python(self, value: object) -> int | None:  # type: ignore[override]
        """Return the seconds, or None for an empty field. Raises ValidationError for any other text."""
        text = super().to_python(value)
        if not text:
            return None
        try:
            return duration_s(text)
        except ValueError as exc:
            raise forms.ValidationError(f"{exc}, got “{text}”") from exc
