"""Revisions whose events a new destination has not got, because ingest stamped them before it existed. Pure."""

from collections.abc import Mapping


def unsent_revisions(earlier: Mapping[int, bool], runs_as: Mapping[int, int]) -> list[int]:
    """Return the earlier revisions whose events lanes did not send to a destination, in order.

    earlier: earlier revisions -> True if they have a destination of this name
    runs_as: rolled-back revisions -> the revision that runs their events since then

    Events of a rolled-back revision ran as either of the two. They are left out only if both have the destination: an
    event that arrives twice can be recognised by its id, and one that never arrives cannot.
    """
    having = {number for number, has in earlier.items() if has}
    return sorted(number for number in earlier if not {number, runs_as.get(number, number)} <= having)
