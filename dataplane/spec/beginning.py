"""`from` of a destination: the accepted events with which a new one starts."""

from datetime import datetime
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from dataplane.spec.errors import SpecError

EARLIEST: Final = "earliest"
Beginning = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=40,
        description="Start of a new destination with earlier events: `earliest`, or a past time with an offset. It has "
        "no effect on a destination that exists.",
        examples=["earliest", "2026-11-20T08:00:00Z"],
    ),
]


def beginning_at(text: str) -> datetime | None:
    """Return the time in a checked `from`; None for EARLIEST, all events that are retained."""
    return None if text == EARLIEST else datetime.fromisoformat(text)


def check_beginning(path: str, text: str | UnsetType) -> None:
    """Check the form of a `from`: EARLIEST, or an ISO 8601 time with an offset. Raises SpecError."""
    if text is UNSET or text == EARLIEST:
        return
    try:
        is_aware = datetime.fromisoformat(text).utcoffset() is not None
    except ValueError:
        is_aware = False
    if not is_aware:
        raise SpecError(path, f"needs {EARLIEST}, or a time with an offset such as 2026-11-20T08:00:00Z")
