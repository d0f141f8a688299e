"""Breaker state of a destination, from the newest signals of the lanes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from dataplane.names import LaneKind
from mgmt.models import LaneSignal

# A breaker opens for a minute at most and is probed within another half minute: an older signal is stale.
SIGNAL_MAX_AGE: Final = timedelta(minutes=5)
_WORST: Final = ("open", "half-open", "closed")
_SLOW_LANE: Final[LaneKind] = "transmit-slow"


@dataclass(frozen=True)
class BreakerView:
    """Worst breaker state of all lanes.

    until: time of the first possible probe
    slow:  the slow lane sends to the destination
    """

    state: str = "closed"
    until: datetime | None = None
    reason: str = ""
    slow: bool = False


def breaker_of(*, pipe_id: str, destination: str, now: datetime) -> BreakerView:
    """Return the worst breaker state in the signals of the last SIGNAL_MAX_AGE.

    `slow` is read from the slow lane's newest signal, however old that is.
    """
    rows = list(LaneSignal.objects.filter(pipe_id=pipe_id, destination=destination))
    slow = any(row.slow and row.writer.startswith(_SLOW_LANE) for row in rows)
    return replace(worst(row for row in rows if row.at >= now - SIGNAL_MAX_AGE), slow=slow)


def worst(rows: Iterable[LaneSignal]) -> BreakerView:
    """Return the worst state of these signals. Pure."""
    known = sorted((row for row in rows if row.breaker in _WORST), key=lambda row: _WORST.index(row.breaker))
    if not known or known[0].breaker == "closed":
        return BreakerView()
    return BreakerView(known[0].breaker, known[0].until, known[0].reason)
