"""Revisions whose events a new destination has not got, because ingest stamped them before it existed. Pure."""

from collections.abc import Mapping
from typing import Any

from dataplane.spec.destinations import with_type


def kind_of(config: Mapping[str, Any] | None) -> str:
    """Return the type of a destination in a stored spec, "" for none."""
    return "" if config is None else str(with_type(config)["type"])


def is_new(config: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    """Return True if the live revision before has no destination of this name and type: `before` is that one."""
    return kind_of(before) != kind_of(config)


def unsent_revisions(kinds: Mapping[int, str], runs_as: Mapping[int, int], kind: str) -> list[int]:
    """Return the revisions whose events lanes did not send to a destination of the type `kind`, in order.

    kinds:   earlier revisions -> type of their destination of this name, "" if they have none
    runs_as: rolled-back revisions -> the revision that runs their events since then

    Events of a rolled-back revision ran as either of the two. They are left out only if both have the destination: an
    event that arrives twice can be recognised by its id, and one that never arrives cannot.
    """
    having = {number for number, found in kinds.items() if found == kind}
    return sorted(number for number in kinds if not {number, runs_as.get(number, number)} <= having)
