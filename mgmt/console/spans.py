"""A length of time as people type it: `24 h`, `90 min`, `3 d`, `45 s`. Pure."""

import re
from typing import Final

from django import forms

_UNITS: Final = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400}
_TYPED: Final = re.compile(r"(\d{1,7})\s*(s|min|m|h|d)?")
NEEDS: Final = "needs a number with s, min, h or d, such as 24 h"


def typed_span(span_s: int) -> str:
    """The span in the largest unit that it fills evenly."""
    for unit in ("d", "h", "min"):
        if span_s >= _UNITS[unit] and not span_s % _UNITS[unit]:
            return f"{span_s // _UNITS[unit]} {unit}"
    return f"{span_s} s"


def span_in_s(text: str) -> int:
    """Seconds; a bare number counts as such. Raises ValueError."""
    found = _TYPED.fullmatch(text.strip().lower())
    if not found:
        raise ValueError(NEEDS)
    return int(found[1]) * _UNITS[found[2] or "s"]


class SpanField(forms.CharField):
    """A text field whose value is seconds."""

    def to_python(self, value: object) -> int | None:  # type: ignore[override]
        """Seconds, or None for an empty field."""
        text = super().to_python(value)
        if not text:
            return None
        try:
            return span_in_s(text)
        except ValueError as exc:
            raise forms.ValidationError(f"{exc}, got “{text}”") from exc
