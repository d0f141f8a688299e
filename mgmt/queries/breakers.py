"""Whether lanes send to a destination at this moment, from what they last said of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from dataplane.names import LaneKind
from mgmt.models import LaneSignal

# A breaker opens for a minute at most, and is probed within half of another: who said nothing for longer is gone.
HEEDED_FOR: Final = timedelta(minutes=5)
_WORST: Final = ("open", "half-open", "closed")
_SLOW_LANE: Final[LaneKind] = "transmit-slow"


@dataclass(frozen=True)
class BreakerView:
    """The worst that a lane says: `until` is when the first probe may go. `slow`: the slow lane sends to it."""

    state: str = "closed"
    until: datetime | None = None
    reason: str = ""
    slow: bool = False


def breaker_of(*, pipe_id: str, destination: str, now: datetime) -> BreakerView:
    """What the lanes that were heard lately say; of being slow the slow lane has the last word, whenever it was."""
    rows = list(LaneSignal.objects.filter(pipe_id=pipe_id, destination=destination))
    slow = any(row.slow and row.writer.startswith(_SLOW_LANE) for row in rows)
    return replace(worst(row for row in rows if row.at >= now - HEEDED_FOR), slow=slow)


def worst(rows: Iterable[LaneSignal]) -> BreakerView:
    """One view of several. Pure."""
    known = sorted((row for row in rows if row.breaker in _WORST), key=lambda row: _WORST.index(row.breaker))
    if not known or known[0].breaker == "closed":
        return BreakerView()
    return BreakerView(known[0].breaker, known[0].until, known[0].reason)
