"""Path converters of pages and the API."""

from functools import cache

from django.urls import register_converter
from django.urls.converters import StringConverter


class RowId(StringConverter):
    """Path converter of a row's id: a prefix and 20 characters (mgmt.ids)."""

    regex = r"[a-z]{2,8}_[0-9a-z]{20}"


class SpecName(StringConverter):
    """Path converter of a name in a spec."""

    regex = r"[a-z0-9][a-z0-9-]{0,39}"


class Position(StringConverter):
    """Path converter of a message's position: generation, partition and offset."""

    regex = r"[0-9]{1,4}-[0-9]{1,5}-[0-9]{1,13}"


class Number(StringConverter):
    """Path converter of a positive number that fits the column, such as a revision's."""

    regex = r"[1-9][0-9]{0,8}"

    def to_python(self, value: str) -> int:  # type: ignore[override]
        """Return the path segment as an integer."""
        return int(value)


@cache
def register_path_converters() -> None:
    """Register the converters; each module whose routes name one calls this first."""
    register_converter(RowId, "row_id")
    register_converter(SpecName, "spec_name")
    register_converter(Number, "number")
    register_converter(Position, "position")
