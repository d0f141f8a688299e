"""The `dedup` part of a spec: the values that identify an event, and the time window."""

from typing import Annotated

from msgspec import Meta, Struct

from dataplane.spec.errors import SpecError
from dataplane.spec.steps import FieldPath

WEEK_S = 7 * 24 * 3600
WHOLE_BODY = "$"
EACH = "*"


class DedupSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """Settings of dedup: of all events with the same values at `paths`, as they arrived, only the first passes.

    An event that arrives more than `window_s` after the first one, by our clock, is a first one again. An event without
    a value at each path has no identity and passes.
    """

    paths: Annotated[list[FieldPath], Meta(min_length=1, max_length=5)]
    window_s: Annotated[int, Meta(ge=1, le=WEEK_S)] = 24 * 3600


def check_dedup(dedup: DedupSpec) -> None:
    """Check the paths. Raises SpecError for a duplicate path, or one that is not the path of one value."""
    for number, path in enumerate(dedup.paths):
        if path == WHOLE_BODY or EACH in path.split("."):
            raise SpecError(f"$.dedup.paths[{number}]", "needs the path of one value, without $ and *")
    if len(set(dedup.paths)) < len(dedup.paths):
        raise SpecError("$.dedup.paths", "needs each path once")
