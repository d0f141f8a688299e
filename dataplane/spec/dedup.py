"""`dedup`: which values make two events the same, and for how long."""

from typing import Annotated

from msgspec import Meta, Struct

from dataplane.spec.errors import SpecError
from dataplane.spec.steps import Path

WEEK_S = 7 * 24 * 3600
WHOLE_BODY = "$"
EACH = "*"


class Dedup(Struct, forbid_unknown_fields=True, frozen=True):
    """Only the first of the events with the same values at `paths`, as they arrived, goes on.

    An event that comes more than `window_s` after a first one, by our clock, is a first one again. One without a value
    at each path cannot be told from others and goes on.
    """

    paths: Annotated[list[Path], Meta(min_length=1, max_length=5)]
    window_s: Annotated[int, Meta(ge=1, le=WEEK_S)] = 24 * 3600


def check_dedup(dedup: Dedup) -> None:
    """Raises SpecError, naming the path."""
    for number, path in enumerate(dedup.paths):
        if path == WHOLE_BODY or EACH in path.split("."):
            raise SpecError(f"$.dedup.paths[{number}]", "needs the path of one value, without $ and *")
    if len(set(dedup.paths)) < len(dedup.paths):
        raise SpecError("$.dedup.paths", "needs each path once")
