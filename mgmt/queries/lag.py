"""How lags become durations and shares. Pure: cumulative lags in, differences out.

A node's lag_in and lag_out are now - event_time on arrival and on departure, so both are cumulative from the source on.
What a hop took is the difference between neighbours at the same percentile; the differences add up to the end-to-end
lag by construction. A difference can be negative: a node's departure is its report from Kafka, and the next node may
have read the record before that report was back; and percentiles of different hops need not come from one message.
The lag table keeps such values; before shares are taken, `side_by_side` gives overlapping time to the later hop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["source", "process", "transit"]


@dataclass(frozen=True)
class Passage:
    """One node at one percentile: cumulative lag on arrival and departure; None where nothing was measured."""

    node: str
    in_us: int | None
    out_us: int | None


@dataclass(frozen=True)
class Hop:
    """A stretch of the way and what it took. `name` is the node's, or `a to b` between two nodes."""

    name: str
    kind: Kind
    took_us: int


def process_duration_us(passage: Passage) -> int | None:
    """lag_out(N) - lag_in(N), or None if either was not measured."""
    if passage.in_us is None or passage.out_us is None:
        return None
    return passage.out_us - passage.in_us


def end_to_end_us(passages: Sequence[Passage]) -> int | None:
    """The cumulative lag at the last departure that was measured."""
    departures = [passage.out_us for passage in passages if passage.out_us is not None]
    return departures[-1] if departures else None


def hops(passages: Sequence[Passage]) -> list[Hop]:
    """The way as hops in order of travel, adding up to the end-to-end lag.

    What passed before the first measurement is `source`: the time between the event and its arrival at ingest.
    Nodes without any measurement are left out; the time around them is then part of the transit.
    """
    found: list[Hop] = []
    clock_us, previous = 0, ""
    for passage in passages:
        if passage.in_us is not None:
            kind: Kind = "transit" if previous else "source"
            name = f"{previous} to {passage.node}" if previous else "source"
            found.append(Hop(name, kind, passage.in_us - clock_us))
            clock_us = passage.in_us
        if passage.out_us is not None:
            found.append(Hop(passage.node, "process", passage.out_us - clock_us))
            clock_us = passage.out_us
        if passage.in_us is not None or passage.out_us is not None:
            previous = passage.node
    return found


def side_by_side(passages: Sequence[Passage]) -> list[Passage]:
    """The same way without overlaps: nothing leaves later than it arrived further on, and the end stays the end."""
    straight: list[Passage] = []
    next_us: int | None = None
    for passage in reversed(passages):
        out_us = _earlier(passage.out_us, next_us)
        next_us = out_us if out_us is not None else next_us
        in_us = _earlier(passage.in_us, next_us)
        next_us = in_us if in_us is not None else next_us
        straight.append(Passage(passage.node, in_us, out_us))
    return straight[::-1]


def shares(way: Sequence[Hop]) -> list[tuple[Hop, float]]:
    """Each hop's share (0..1) of the whole; negative differences count as nothing. Empty if nothing took time."""
    whole_us = sum(max(hop.took_us, 0) for hop in way)
    if not whole_us:
        return []
    return [(hop, max(hop.took_us, 0) / whole_us) for hop in way]


def _earlier(moment_us: int | None, next_us: int | None) -> int | None:
    return moment_us if moment_us is None or next_us is None else min(moment_us, next_us)
