"""Results of expressions as JSON values, within a limit of size. Pure."""

from math import isfinite
from typing import Any, Final

from dataplane.expr.times import time_text
from dataplane.expr.values import CostLimitError, Duration, EvaluationError, Timestamp

MAX_VALUES: Final = 50_000  # of a result


def to_json(value: Any, max_bytes: int) -> Any:
    """Return a copy that JSON can represent: timestamps and durations as text, nothing shared with the body.

    Raises EvaluationError for a number that is not finite, CostLimitError if the result has more than about `max_bytes`
    when encoded, or more than MAX_VALUES values.
    """
    return _Copy(max_bytes).of(value)


class _Copy:
    """Copies and counts at once, so that a value which repeats a large part many times is stopped, not built."""

    def __init__(self, max_bytes: int) -> None:
        self._left = self._max = max_bytes
        self._values_left = MAX_VALUES

    def of(self, value: Any) -> Any:
        kind_of = type(value)
        if kind_of is str:
            self._take(_written_bytes(value))
            return value
        if kind_of is dict:
            self._take(2)
            return {self._key(key): self.of(part) for key, part in value.items()}
        if kind_of is list:
            self._take(2)
            return [self.of(part) for part in value]
        self._take(8)
        if kind_of is float and not isfinite(value):
            raise EvaluationError("JSON cannot represent a double that is not finite")
        if kind_of is Timestamp or kind_of is Duration:
            return time_text(value)
        return value

    def _key(self, key: str) -> str:
        self._left -= _written_bytes(key) + 2
        return key

    def _take(self, size_bytes: int) -> None:
        self._left -= size_bytes
        self._values_left -= 1
        if self._left < 0:
            raise CostLimitError(f"the result is larger than {self._max} bytes")
        if self._values_left < 0:
            raise CostLimitError(f"the result has more than {MAX_VALUES} values")


def _written_bytes(text: str) -> int:
    """Return the encoded bytes of a text with quotes; for text beyond ASCII an upper bound."""
    return 2 + len(text) * (1 if text.isascii() else 4)
