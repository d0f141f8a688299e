"""Throughput and lag of cells over the last hour, from the Autoscaler's samples of Kafka's offsets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from django.db import connection

PARTS: Final = 12
PART_S: Final = 300
ENTRANCE: Final = "process"  # its input has every event of the cell once
WATCHED: Final = ("process", "transmit")  # in the other groups messages wait on purpose
_MICROSECONDS: Final = 1_000_000
# The first and the last sample of each part, by their times: counters fall when a topic is replaced.
_SAMPLES: Final = """
WITH parts AS (
    SELECT cell, kind, floor(extract(epoch FROM at - %(first)s) / %(part_s)s)::int AS part, min(at) AS a, max(at) AS z
    FROM mgmt_scalesample WHERE at >= %(first)s AND kind = ANY(%(kinds)s) GROUP BY 1, 2, 3
)
SELECT p.cell, p.kind, p.part, extract(epoch FROM p.z - p.a)::float, one.came, last.came, one.settled, last.settled
FROM parts p
JOIN mgmt_scalesample one ON one.cell = p.cell AND one.kind = p.kind AND one.at = p.a
JOIN mgmt_scalesample last ON last.cell = p.cell AND last.kind = p.kind AND last.at = p.z
ORDER BY p.part
"""


class GroupPart(NamedTuple):
    """Counters of one group in one part: at its first and its last sample, `span_s` apart."""

    part: int
    span_s: float
    came: tuple[int, int]
    settled: tuple[int, int]

    @property
    def rate(self) -> float | None:
        """Arrived messages per second; None with a single sample, or if the topics were replaced meanwhile."""
        came = self.came[1] - self.came[0]
        return came / self.span_s if self.span_s and came >= 0 else None


@dataclass(frozen=True)
class CellTrend:
    """Figures of a cell by part of the last hour, oldest first; None for parts without samples.

    rates:   events that arrived per second
    lags_us: time that the backlog of the slower of process and transmit takes at the rate of the part. While nothing is
             settled, the lag grows by the length of each part.
    """

    rates: Sequence[float | None]
    lags_us: Sequence[int | None]


EMPTY: Final = CellTrend([None] * PARTS, [None] * PARTS)


def cell_trends(now: datetime) -> Mapping[str, CellTrend]:
    """Return the trend of each cell that has samples; one query."""
    last = int(now.timestamp()) // PART_S
    first = datetime.fromtimestamp((last - PARTS + 1) * PART_S, UTC)
    groups: dict[str, dict[str, list[GroupPart]]] = defaultdict(lambda: defaultdict(list))
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLES, {"first": first, "part_s": PART_S, "kinds": list(WATCHED)})
        for cell, kind, part, span_s, *counters in cursor.fetchall():
            came, settled = (counters[0], counters[1]), (counters[2], counters[3])
            groups[cell][kind].append(GroupPart(part, span_s, came, settled))
    return {cell: trend_of(parts) for cell, parts in groups.items()}


def trend_of(groups: Mapping[str, Sequence[GroupPart]]) -> CellTrend:
    """Return the trend of a cell from its groups' parts, in order of time. Pure."""
    rates: list[float | None] = [None] * PARTS
    for one in groups.get(ENTRANCE, ()):
        if 0 <= one.part < PARTS:
            rates[one.part] = one.rate
    lags: list[int | None] = [None] * PARTS
    for parts in groups.values():
        for part, lag_s in _lags_s(parts):
            if 0 <= part < PARTS:
                lags[part] = max(lags[part] or 0, round(lag_s * _MICROSECONDS))
    return CellTrend(rates, lags)


def _lags_s(parts: Iterable[GroupPart]) -> Iterable[tuple[int, float]]:
    lag_s = 0.0
    for one in parts:
        backlog = max(0, one.came[1] - one.settled[1])
        settled = one.settled[1] - one.settled[0]
        if not backlog:
            lag_s = 0.0
        elif settled > 0:
            lag_s = backlog * one.span_s / settled
        else:
            lag_s += one.span_s
        yield one.part, lag_s
