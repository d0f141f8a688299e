"""Decide which kinds of rejected events persist, so that their pipe's tenant is alerted. Pure."""

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

MOST_LISTED: Final = 10  # kinds that an alert names; the page of rejected events has all


class RejectingPolicy(Struct, frozen=True):
    """Thresholds of the alert `rejecting`.

    window_min: minutes that are looked at, the current one included; without a rejected event in them it is over
    least:      events of one kind in these minutes from which it is more than a mistake by hand
    minutes:    different minutes with such an event from which it is more than one bad batch
    """

    window_min: int = 10
    least: int = 20
    minutes: int = 3


class RecentRejections(Struct, frozen=True):
    """Events of one kind that were rejected in the window. `minutes`: number of minutes with at least one."""

    rejection: int
    events: int
    minutes: int


def persisting(
    recent: Iterable[RecentRejections], alerted: Collection[int], policy: RejectingPolicy
) -> list[RecentRejections]:
    """Return the kinds to alert about, the most frequent first.

    A kind that is in the open alert stays until no event of it was rejected in the window.

    alerted: the kinds that the open alert names
    """
    found = [
        one
        for one in recent
        if (one.events >= policy.least and one.minutes >= policy.minutes) or (one.events and one.rejection in alerted)
    ]
    return sorted(found, key=lambda one: (-one.events, one.rejection))
