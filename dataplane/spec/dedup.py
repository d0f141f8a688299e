"""The `dedup` part of a spec: the values that identify an event, and the time window."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from dataplane.spec.errors import SpecError
from dataplane.spec.steps import FieldPath

WEEK_S = 7 * 24 * 3600
WHOLE_BODY = "$"
EACH = "*"


class DedupSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """Settings of dedup: of all events with the same values at `paths`, as they arrived, only the first passes.

    An event that arrives more than `window_s` after the first one, by our clock, is a first one again. An event without
    a value at each path has no identity and passes.

    by: `idempotency-key` takes the sender's own id of the delivery in place of paths: an Idempotency-Key, or the id of
        a webhook's delivery. Omitted unless set: earlier releases of the data plane refuse it
    """

    paths: Annotated[list[FieldPath], Meta(max_length=5)] = []
    window_s: Annotated[int, Meta(ge=1, le=WEEK_S)] = 24 * 3600
    by: Literal["idempotency-key"] | UnsetType = UNSET


def check_dedup(dedup: DedupSpec) -> None:
    """Check the paths. Raises SpecError for a duplicate path, or one that is not the path of one value."""
    if bool(dedup.paths) == bool(dedup.by):
        raise SpecError("$.dedup.paths", "needs 1 to 5 paths, or none with `by`")
    for number, path in enumerate(dedup.paths):
        if path == WHOLE_BODY or EACH in path.split("."):
            raise SpecError(f"$.dedup.paths[{number}]", "needs the path of one value, without $ and *")
    if len(set(dedup.paths)) < len(dedup.paths):
        raise SpecError("$.dedup.paths", "needs each path once")
